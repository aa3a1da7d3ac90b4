// ${VAR} in the texts of a configuration. `$${` stands for a literal `${`; a lone `$` stays as it is.

export interface Substituted {
  readonly text: string
  /** The variables whose values are in the text, so that messages can name them instead of it. */
  readonly variables: ReadonlyArray<string>
  /** What kept a place from being filled, for a person; names variables, never values. */
  readonly problems: ReadonlyArray<string>
}

const place = /\$\$\{|\$\{([^{}]*)(\})?/g
const reference = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s

/**
 * Fills in every `${NAME}` and `${NAME:-default}`; the default is also used for a variable that is empty. Nobody is
 * advised to give a secret a default: it would stand in the file for all to read.
 */
export const substitute = (
  text: string,
  env: Readonly<Record<string, string | undefined>>,
  secret = false
): Substituted => {
  const variables: Array<string> = []
  const problems: Array<string> = []
  const filled = text.replace(place, (match, inner: string | undefined, close: string | undefined) => {
    if (match === "$${") return "${"
    const parts = close === undefined ? null : reference.exec(inner ?? "")
    if (parts === null) {
      problems.push(
        `\${ starts a variable but no name and } follow; write \${NAME}, or $\${ for a literal \${`
      )
      return ""
    }
    const name = parts[1] ?? ""
    const value = Object.hasOwn(env, name) ? env[name] : undefined
    if (parts[2] !== undefined && (value === undefined || value === "")) return parts[2]
    if (value === undefined) {
      problems.push(
        secret
          ? `the variable ${name} is not set; set it in the environment that the edge starts in`
          : `the variable ${name} is not set; set it, or give a default: \${${name}:-default}`
      )
      return ""
    }
    variables.push(name)
    return value
  })
  return { text: filled, variables, problems }
}
