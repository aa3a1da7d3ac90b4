// The edge's command line.
import { runCli } from "./cli/runCli.ts"

runCli(process.argv.slice(2))
