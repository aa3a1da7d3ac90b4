// `pnpm soak --minutes N --seed S`: random faults for N minutes, then the books. Exit code 0 when they balance, 1 with
// what does not, 2 for arguments that make no sense.
import { parseArgs } from "node:util"
import { soak } from "./soak.ts"

const print = (line: string) => void process.stdout.write(`${line}\n`)
const printError = (line: string) => void process.stderr.write(`${line}\n`)

const usage = "usage: pnpm soak [--minutes N] [--seed S]"

const numberOf = (name: string, text: string, least: number): number => {
  const value = Number(text)
  if (text.trim() === "" || !Number.isFinite(value) || value < least) {
    throw new RangeError(`--${name}: ${text} is not a number from ${least} on`)
  }
  return value
}

const readArguments = () => {
  const { values } = parseArgs({
    options: {
      minutes: { type: "string", default: "10" },
      seed: { type: "string", default: "1" }
    }
  })
  return { minutes: numberOf("minutes", values.minutes, 0.05), seed: numberOf("seed", values.seed, 0) }
}

const listed = (counts: ReadonlyMap<string, number>): string =>
  counts.size === 0
    ? "none"
    : [...counts]
        .sort(([a], [b]) => a.localeCompare(b))
        .map(([name, count]) => `${name} ${count}`)
        .join(", ")

const run = async (): Promise<number> => {
  let options: ReturnType<typeof readArguments>
  try {
    options = readArguments()
  } catch (error) {
    printError(`${error instanceof Error ? error.message : String(error)}\n${usage}`)
    return 2
  }
  print(`soak: ${options.minutes} minutes with seed ${options.seed}`)
  const result = await soak({ ...options, say: (line) => print(line) })
  print(`faults: ${listed(result.faults)}`)
  print(`runs: ${result.runs}, events read: ${result.events}`)
  print(`ends: ${listed(result.outcomes)}`)
  print(`refused: ${listed(result.refusals)}`)
  print(
    `memory of the edge: at most ${result.peakMb.toFixed(0)} MB, ${result.slopeMb.toFixed(1)} MB per 10 minutes over the second half`
  )
  for (const finding of result.findings) print(`- ${finding}`)
  print(result.findings.length === 0 ? "the books balance" : `the books do not balance`)
  return result.findings.length === 0 ? 0 : 1
}

process.exitCode = await run()
