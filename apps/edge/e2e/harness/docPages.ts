// The documentation as tests see it: the pages, and in each the commands with what they are said to print.
import { globSync, readFileSync } from "node:fs"
import { join, resolve } from "node:path"

export const workspace = resolve(import.meta.dirname, "../../../..")

/** A fenced block of shell commands. */
export interface CommandBlock {
  /** For messages: `README.md:12`. */
  readonly place: string
  readonly text: string
  /** The `text` block right after it: a screen that the commands are said to give. */
  readonly screen: ReadonlyArray<string>
  /** Why no test runs it, from its first line. */
  readonly notRun: string | undefined
}

export interface DocPage {
  readonly path: string
  readonly blocks: ReadonlyArray<CommandBlock>
}

interface Fence {
  readonly language: string
  readonly line: number
  readonly body: ReadonlyArray<string>
  readonly end: number
}

/** Every page that a person reads, with its commands. */
export const docPages = (): ReadonlyArray<DocPage> =>
  ["*.md", "docs/*.md", "proto/*.md", "apps/*/*.md", "packages/*/*.md", "examples/*/*.md"]
    .flatMap((pattern) => globSync(pattern, { cwd: workspace }))
    .sort()
    .map((path) => ({ path, blocks: commandBlocks(path) }))

const commandBlocks = (path: string): ReadonlyArray<CommandBlock> => {
  const lines = readFileSync(join(workspace, path), "utf8").split("\n")
  const fences = fencesOf(path, lines)
  return fences.flatMap((fence, index) => {
    if (/^(bash|shell|console|zsh)$/.test(fence.language)) {
      throw new Error(`${path}:${fence.line}: commands stand in blocks of \`sh\`, so that they are tested`)
    }
    if (fence.language !== "sh") return []
    const next = fences[index + 1]
    const follows = next !== undefined && lines.slice(fence.end, next.line - 1).every((line) => line === "")
    return [
      {
        place: `${path}:${fence.line}`,
        text: fence.body.join("\n"),
        screen: follows && next.language === "text" ? next.body : [],
        notRun: /^# Not run by a test: (.+)$/.exec(fence.body[0] ?? "")?.[1]
      }
    ]
  })
}

/** Line numbers from 1; `end` is the line after the fence. */
const fencesOf = (path: string, lines: ReadonlyArray<string>): ReadonlyArray<Fence> => {
  const fences: Array<Fence> = []
  for (let at = 0; at < lines.length; at++) {
    const opening = /^```(\w*)/.exec(lines[at] ?? "")
    if (opening === null) continue
    const length = lines.slice(at + 1).indexOf("```")
    if (length < 0) throw new Error(`${path}:${at + 1}: the block has no end`)
    fences.push({
      language: opening[1] ?? "",
      line: at + 1,
      body: lines.slice(at + 1, at + 1 + length),
      end: at + 2 + length
    })
    at += length + 1
  }
  return fences
}

/** The lines of a screen that the output does not have. Figures and the width of columns may differ; `…` cuts a line. */
export const missingLines = (screen: ReadonlyArray<string>, output: string): ReadonlyArray<string> => {
  const plain = (line: string) => line.trim().replaceAll(/\s+/g, " ").replaceAll(/\d+/g, "0")
  const printed = output.split("\n").map(plain)
  return screen.filter((line) => {
    const cut = line.indexOf("…")
    const expected = plain(cut < 0 ? line : line.slice(0, cut))
    return !printed.some((other) => (cut < 0 ? other === expected : other.startsWith(expected)))
  })
}
