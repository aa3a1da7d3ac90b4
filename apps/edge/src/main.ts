// The edge's command line. What was compiled once is kept by Node in the system's temporary folder: commands start in
// two thirds of the time.
import { enableCompileCache } from "node:module"

enableCompileCache()
const { runCli } = await import("./cli/runCli.ts")
runCli(process.argv.slice(2))
