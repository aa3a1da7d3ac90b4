// The source files of the workspace as text, for tests that hold the code against its rules.
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative, resolve } from "node:path"

/** Absolute path of the workspace. */
export const workspace = resolve(import.meta.dirname, "../../..")

export interface SourceFile {
  /** Relative to the workspace, with `/`. */
  readonly path: string
  /** Without comments. */
  readonly code: string
  /** What it imports; its own files as paths relative to the workspace, others as written. */
  readonly imports: ReadonlyArray<SourceImport>
}

export interface SourceImport {
  readonly target: string
  /** Whether nothing of it is left when the program runs. */
  readonly typeOnly: boolean
}

/** Every `.ts` file below a folder of the workspace but tests; nothing generated, built or installed. */
export function sourceFiles(folder: string): ReadonlyArray<SourceFile> {
  return readdirSync(join(workspace, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) {
      return ["node_modules", "dist", "gen"].includes(entry.name) ? [] : sourceFiles(path)
    }
    if (!path.endsWith(".ts") || path.endsWith(".test.ts")) return []
    return [readSource(path)]
  })
}

function readSource(path: string): SourceFile {
  const code = withoutComments(readFileSync(join(workspace, path), "utf8"))
  const imports = [...code.matchAll(/\b(?:import|export)\b([^"'`;]*?\bfrom\s+|\s*\(?\s*)"([^"]+)"/g)].map(
    ([, clause = "", target = ""]) => ({
      target: target.startsWith(".")
        ? relative(workspace, join(workspace, dirname(path), target)).replaceAll("\\", "/")
        : target,
      typeOnly: /^\s+type\b/.test(clause)
    })
  )
  return { path, code, imports }
}

/** Strings stay as they are, so that what looks like a comment inside one is none. */
function withoutComments(text: string): string {
  return text.replace(
    /("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|\/\*[\s\S]*?\*\/|(?<![:"'`/\\])\/\/[^\n]*/g,
    (_match, string: string | undefined) => string ?? ""
  )
}
