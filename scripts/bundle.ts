// Makes what is deployed: for each program a launcher and one JavaScript file that runs on plain Node 24 without
// node_modules, its source map, and a package.json that names the command. Started by the `build` script of an app, in the app's folder:
//   bundle.ts --bin COMMAND [--out FOLDER] NAME=ENTRY [NAME=ENTRY ...]
// The first program is the command; the others lie beside it for the command to start.
import { chmod, mkdir, readFile, rm, writeFile } from "node:fs/promises"
import { resolve } from "node:path"
import { parseArgs } from "node:util"
import { rolldown } from "rolldown"

/** The fields of an app's package.json that its deployed package repeats. */
interface Manifest {
  readonly name: string
  readonly version: string
  readonly description?: string
  readonly license: string
}

/** The Node release line that the bundles need; the workspace pins one of it. */
const NODE_MAJOR = 24

/**
 * The file that is started. An older Node refuses to link a program that imports what it lacks, before any line of it
 * runs: the version is checked in a file of its own, in words that every Node understands.
 */
const launcher = (name: string, command: string): string => `#!/usr/bin/env -S node --max-semi-space-size=4
// Starts ${name}.main.js on a Node that can run it. The options above: a young generation of 4 MiB has half the memory
// and less than half the tail latency of the default.
if (Number(process.versions.node.split(".")[0]) >= ${NODE_MAJOR}) import("./${name}.main.js")
else {
  process.stderr.write("${command} needs Node ${NODE_MAJOR} or newer, this is " + process.versions.node + "\\n")
  process.exitCode = 2
}
`

/**
 * Bundles one program into `<out>/<name>.main.js`, with its source map beside it, and its launcher `<out>/<name>.js`.
 *
 * @param out folder
 * @param command what the program is called in messages
 * @param name name of the file, without extension
 * @param entry source file, relative to the current folder
 */
async function bundleProgram(out: string, command: string, name: string, entry: string): Promise<void> {
  const bundle = await rolldown({
    input: resolve(entry),
    platform: "node",
    treeshake: true,
    // A warning is an import that will not be there, or code that means something else once bundled.
    onLog: (_level, log) => {
      throw new Error(`${entry}: ${log.message}`)
    }
  })
  await bundle.write({
    file: resolve(out, `${name}.main.js`),
    format: "esm",
    codeSplitting: false,
    sourcemap: true,
    // A stack trace of the deployed program is to be read; minified it starts no faster.
    minify: false
  })
  await bundle.close()
  const file = resolve(out, `${name}.js`)
  await writeFile(file, launcher(name, command))
  await chmod(file, 0o755)
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { bin: { type: "string" }, out: { type: "string", default: "dist" } }
})
const { bin, out } = values
if (bin === undefined || positionals.length === 0) {
  throw new Error("usage: bundle.ts --bin COMMAND [--out FOLDER] NAME=ENTRY [NAME=ENTRY ...]")
}
const programs = positionals.map((positional) => {
  const [name, entry] = positional.split("=")
  if (name === undefined || entry === undefined) throw new Error(`not of the form NAME=ENTRY: ${positional}`)
  return { name, entry }
})

await rm(out, { recursive: true, force: true })
await mkdir(out, { recursive: true })
for (const [index, { entry, name }] of programs.entries()) {
  await bundleProgram(out, index === 0 ? bin : name, name, entry)
}

const manifest: Manifest = JSON.parse(await readFile("package.json", "utf8"))
const deployed = {
  name: bin,
  version: manifest.version,
  description: manifest.description,
  license: manifest.license,
  type: "module",
  bin: { [bin]: `${programs[0]?.name}.js` },
  engines: { node: `>=${NODE_MAJOR}` }
}
await writeFile(resolve(out, "package.json"), `${JSON.stringify(deployed, undefined, 2)}\n`)
