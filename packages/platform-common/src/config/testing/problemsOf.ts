// What the tests of the configuration ask of a text: its problems as lines, or the configuration itself.

import { Result } from "effect"
import { type ConfigProblem, formatProblem } from "../ConfigProblem.ts"
import { type LoadedConfig, type ParseOptions, parseConfig } from "../parseConfig.ts"

type Options = Partial<ParseOptions> & { readonly files?: Readonly<Record<string, string>> }

export const parse = (text: string, options: Options = {}) => {
  const { files = {}, ...rest } = options
  return parseConfig(text, {
    file: "edge.yaml",
    env: {},
    baseDir: "/etc/iop",
    ...rest,
    readFile: (path) => {
      const content = files[path]
      return content === undefined ? { fault: "no such file" } : { text: content }
    }
  })
}

/** Errors and warnings, in order. */
export const problemsOf = (text: string, options: Options = {}): ReadonlyArray<ConfigProblem> => {
  const result = parse(text, options)
  return Result.isFailure(result) ? result.failure.problems : result.success.warnings
}

/** `line:column path: message` of each error. */
export const errorsOf = (text: string, options: Options = {}): ReadonlyArray<string> =>
  problemsOf(text, options)
    .filter(({ severity }) => severity === "error")
    .map((problem) => formatProblem(problem).replace(/^edge\.yaml:/, ""))

/** `path: message` of each warning. */
export const warningsOf = (text: string, options: Options = {}): ReadonlyArray<string> =>
  problemsOf(text, options)
    .filter(({ severity }) => severity === "warning")
    .map(({ message, path }) => `${path}: ${message}`)

/** A configuration without errors. */
export const loaded = (text: string, options: Options = {}): LoadedConfig =>
  Result.getOrThrow(parse(text, options))
