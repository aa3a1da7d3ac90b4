// Parses the bomb that its argument names and prints the problems, then the most memory that the process ever had, in MiB.

import { Result } from "effect"
import { parseConfig } from "../parseConfig.ts"
import { bombs } from "./bombs.ts"

const text = bombs[process.argv[2] ?? ""]?.text() ?? ""
const result = parseConfig(text, { file: "edge.yaml", env: {} })
const first = Result.isFailure(result) ? result.failure.message : "no problem"
process.stdout.write(`${first}\n${Math.round(process.resourceUsage().maxRSS / 1024)}\n`)
