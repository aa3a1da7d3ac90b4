// The edge's command line. What was compiled once is kept by Node in the system's temporary folder: commands start in
// two thirds of the time.
import { enableCompileCache } from "node:module"

enableCompileCache()

// The workspace's scripts run in the folder of the package; a path on the command line means from where it was typed.
const { INIT_CWD, npm_lifecycle_event } = process.env
if (INIT_CWD !== undefined && ["edge", "console", "start"].includes(npm_lifecycle_event ?? "")) {
  process.chdir(INIT_CWD)
}

const { runCli } = await import("./cli/runCli.ts")
runCli(process.argv.slice(2))
