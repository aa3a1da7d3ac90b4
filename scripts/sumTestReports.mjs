// Sums the JSON reports that vitest leaves in each package: what failed or was skipped, and as the last line
// `N passed, N failed`. Ends with 1 unless every package that has tests ran all of them and all passed. Plain
// JavaScript, because it also has to speak where the installation of the pinned Node failed.
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = join(dirname(fileURLToPath(import.meta.url)), "..")
const notOurs = new Set(["node_modules", "dist", "reports"])

/** Whether a folder has a test file, at any depth. */
function hasTests(folder) {
  return readdirSync(folder, { withFileTypes: true }).some((entry) =>
    entry.isDirectory()
      ? !notOurs.has(entry.name) && hasTests(join(folder, entry.name))
      : entry.name.endsWith(".test.ts")
  )
}

/** @returns {{ passed: number, failed: string[], skipped: string[] }} of one report */
function readReport(file) {
  const report = JSON.parse(readFileSync(file, "utf8"))
  const sum = { passed: 0, failed: [], skipped: [] }
  for (const suite of report.testResults) {
    for (const test of suite.assertionResults) {
      const name = `${suite.name.slice(root.length + 1)}: ${test.fullName}`
      if (test.status === "passed") sum.passed += 1
      else if (test.status === "failed") sum.failed.push(name)
      else sum.skipped.push(name)
    }
    // A file that could not be loaded has no test that failed.
    if (suite.status === "failed" && !suite.assertionResults.some((test) => test.status === "failed")) {
      sum.failed.push(`${suite.name.slice(root.length + 1)}: ${suite.message || "did not load"}`)
    }
  }
  // An error outside of any test, such as an unhandled rejection.
  if (!report.success && sum.failed.length === 0) sum.failed.push(`${file}: an error outside of the tests`)
  return sum
}

let passed = 0
let failed = 0
let skipped = 0
const packages = ["apps", "packages", "examples"].flatMap((group) =>
  readdirSync(join(root, group), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(group, entry.name))
)
for (const name of packages) {
  if (!hasTests(join(root, name))) continue
  const reports = join(root, name, "reports")
  const files = existsSync(reports) ? readdirSync(reports).filter((file) => file.endsWith(".json")) : []
  if (files.length === 0) {
    console.log(`${name}: has tests and wrote no report`)
    failed += 1
    continue
  }
  const sums = files.map((file) => readReport(join(reports, file)))
  const count = (list) => sums.reduce((total, sum) => total + list(sum), 0)
  const own = {
    passed: count((sum) => sum.passed),
    failed: count((sum) => sum.failed.length),
    skipped: count((sum) => sum.skipped.length)
  }
  console.log(`${name}: ${own.passed} passed, ${own.failed} failed, ${own.skipped} skipped`)
  for (const sum of sums) {
    for (const test of sum.failed) console.log(`  failed  ${test}`)
    for (const test of sum.skipped) console.log(`  skipped ${test}`)
  }
  passed += own.passed
  failed += own.failed
  skipped += own.skipped
}
if (skipped > 0)
  console.log(`${skipped} skipped: a test that does not run proves nothing, so each counts as failed`)
console.log(`${passed} passed, ${failed + skipped} failed`)
process.exitCode = passed > 0 && failed + skipped === 0 ? 0 : 1
