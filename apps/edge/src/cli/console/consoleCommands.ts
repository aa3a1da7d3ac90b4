// What can be typed at the console: a prompt, or a command that starts with a slash.

export interface ConsoleCommand {
  readonly name: string
  readonly usage: string
  readonly help: string
}

/** In the order in which `/help` lists them. */
export const consoleCommands: ReadonlyArray<ConsoleCommand> = [
  { name: "/nodes", usage: "/nodes", help: "the nodes and what they offer" },
  { name: "/use", usage: "/use ADAPTER TARGET", help: "where the next prompts go" },
  { name: "/runs", usage: "/runs", help: "the last runs" },
  { name: "/cancel", usage: "/cancel [RUN]", help: "cancel a run; without a name, the present one" },
  {
    name: "/explain",
    usage: "/explain [ADAPTER TARGET]",
    help: "which node would get a run, and why not the others"
  },
  { name: "/help", usage: "/help", help: "this list" },
  { name: "/quit", usage: "/quit", help: "leave" }
]

/** A line as it was typed. */
export type ConsoleLine =
  | { readonly type: "nothing" }
  | { readonly type: "prompt"; readonly text: string }
  | { readonly type: "nodes" }
  | { readonly type: "use"; readonly adapter: string; readonly target: string }
  | { readonly type: "runs" }
  | { readonly type: "cancel"; readonly run: string | undefined }
  | { readonly type: "explain"; readonly adapter: string | undefined; readonly target: string | undefined }
  | { readonly type: "help" }
  | { readonly type: "quit" }
  /** A sentence about what is wrong with the command. */
  | { readonly type: "mistake"; readonly message: string }

const usageOf = (name: string): string =>
  consoleCommands.find((command) => command.name === name)?.usage ?? name

const mistake = (name: string): ConsoleLine => ({ type: "mistake", message: `usage: ${usageOf(name)}` })

/** Reads a line. A prompt that begins with a slash is written with two. */
export const parseConsoleLine = (line: string): ConsoleLine => {
  const text = line.trim()
  if (text === "") return { type: "nothing" }
  if (text.startsWith("//")) return { type: "prompt", text: text.slice(1) }
  if (!text.startsWith("/")) return { type: "prompt", text: line }
  const [name = "", ...words] = text.split(/\s+/)
  const [first, second] = words
  switch (name) {
    case "/nodes":
    case "/runs":
    case "/help":
      if (first !== undefined) return mistake(name)
      return { type: name.slice(1) as "nodes" | "runs" | "help" }
    case "/quit":
    case "/exit":
      return first === undefined ? { type: "quit" } : mistake("/quit")
    case "/use":
      if (first === undefined || second === undefined || words.length > 2) return mistake(name)
      return { type: "use", adapter: first, target: second }
    case "/cancel":
      return words.length > 1 ? mistake(name) : { type: "cancel", run: first }
    case "/explain":
      if (words.length === 1 || words.length > 2) return mistake(name)
      return { type: "explain", adapter: first, target: second }
    default:
      return {
        type: "mistake",
        message: `there is no command ${name}; /help lists them, // begins a prompt with a slash`
      }
  }
}

export const helpText = (): string => {
  const width = Math.max(...consoleCommands.map(({ usage }) => usage.length))
  return [
    ...consoleCommands.map(({ usage, help }) => `${usage.padEnd(width)}  ${help}`),
    "",
    "Anything else is a prompt. Ctrl-C cancels the run, and leaves when nothing runs."
  ].join("\n")
}
