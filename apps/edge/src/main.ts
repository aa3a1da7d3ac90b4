// The edge's command line.
import { runCli } from "./cli/runCli.ts"

// The workspace's scripts run in the folder of the package; a path on the command line means from where it was typed.
const { INIT_CWD, npm_lifecycle_event } = process.env
if (INIT_CWD !== undefined && ["edge", "console", "start"].includes(npm_lifecycle_event ?? "")) {
  process.chdir(INIT_CWD)
}

runCli(process.argv.slice(2))
