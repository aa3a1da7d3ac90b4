// docs/operations.md and docs/api.md say what the code does: its lists are complete, and their figures are the code's.
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { RunEventView } from "../src/admin/RunEventView.ts"
import { RunSubmission } from "../src/admin/RunSubmission.ts"
import { ExitCode } from "../src/cli/CommandFailed.ts"
import { failureStatus } from "../src/http/failureStatus.ts"
import { failureCodes } from "../src/run/RunFailure.ts"
import { runLogFields } from "../src/run/RunLog.ts"
import type { RunSnapshot } from "../src/run/RunSpec.ts"
import { withTables } from "./operationsTables.ts"
import { workspace } from "./sourceFiles.ts"

const page = readFileSync(join(workspace, "docs/operations.md"), "utf8")
const apiPage = readFileSync(join(workspace, "docs/api.md"), "utf8")

/** The cells of the table whose head begins so, without backticks. */
const rowsOf = (head: string, text = page): ReadonlyArray<ReadonlyArray<string>> => {
  const lines = text.split("\n")
  const start = lines.findIndex((line) => line.startsWith(head))
  assert.isAtLeast(start, 0, `no table begins with: ${head}`)
  const rest = lines.slice(start + 2)
  const end = rest.findIndex((line) => !line.startsWith("|"))
  return rest.slice(0, end).map((line) =>
    line
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim().replaceAll("`", ""))
  )
}

describe("docs/operations.md", () => {
  it("lists every metric as it is declared; brought up to date by `pnpm run generate`", () => {
    assert.strictEqual(page, withTables(page))
    assert.include(page, "| `iop_edge_runs_total` | counter | `adapter`, `outcome` |")
  })

  it("says for every failure code its HTTP status and what to do", () => {
    const rows = rowsOf("| code | status |")
    assert.deepStrictEqual(
      rows.map(([code, status]) => [code, Number(status)]),
      failureCodes.map((code) => [code, failureStatus(code)])
    )
    for (const [code, , happened, todo] of rows) {
      assert.isNotEmpty(happened, code)
      assert.isNotEmpty(todo, code)
    }
  })

  it("says what each exit code means", () => {
    assert.deepStrictEqual(
      rowsOf("| exit code |").map(([code]) => Number(code)),
      Object.values(ExitCode)
    )
  })

  it("explains every field of a run's log line", () => {
    const run: RunSnapshot = {
      id: "r1",
      adapter: "mock",
      target: "echo",
      caller: "test",
      detached: false,
      phase: "completed",
      attempt: 1,
      attempts: [],
      events: 3,
      submittedAt: "2026-01-01T00:00:00.000Z",
      queueMs: 1,
      totalMs: 2,
      slotHeld: false,
      selection: []
    }
    assert.deepStrictEqual(
      rowsOf("| field |").flatMap(([names = ""]) => names.split(", ")),
      Object.keys(runLogFields(run))
    )
  })
})

describe("docs/api.md", () => {
  it("has every type of event and every field of a submission", () => {
    const names = (head: string) => rowsOf(head, apiPage).flatMap(([cell = ""]) => cell.split(", "))
    assert.sameMembers(names("| type |"), [
      ...new Set(RunEventView.members.map(({ fields }) => fields.type.literal))
    ])
    assert.sameMembers(names("| field |"), Object.keys(RunSubmission.fields))
  })

  it("gives failure codes the status that they have", () => {
    const rows = rowsOf("| status | code |", apiPage).flatMap(([status, codes = ""]) =>
      codes.split(", ").map((code) => [code, Number(status)] as const)
    )
    const failures = new Map<string, number>(failureCodes.map((code) => [code, failureStatus(code)]))
    const told = rows.filter(([code]) => failures.has(code))
    assert.isAtLeast(told.length, 5)
    for (const [code, status] of told) assert.strictEqual(status, failures.get(code), code)
  })
})
