// The unit tests of the node, each as a test of its own: its codec against the golden frames of proto/testdata, and the
// window and resumption of a run.

import { spawnSync } from "node:child_process"
import { beforeAll, describe, expect, it } from "vitest"
import { folder, python, requirePython } from "./PythonNode.ts"

const result = spawnSync(python, ["-m", "unittest", "-v"], { cwd: folder, encoding: "utf8" })
// `test_name (module.Class) ... ok`; the protobuf library may write a complaint of its own before the outcome.
const outcomes = [
  ...result.stderr.matchAll(/^(test_\w+) \(\S+\) \.\.\.[\s\S]*?\b(ok|FAIL|ERROR|skipped.*)$/gm)
]

describe("the Python node without an edge", () => {
  beforeAll(requirePython)

  it("runs its unit tests, all of them", () => {
    expect(result.status, result.stderr).toBe(0)
    expect(outcomes.length).toBeGreaterThan(10)
  })

  for (const [, name = "", outcome = ""] of outcomes) {
    it(name.slice("test_".length).replaceAll("_", " "), () => {
      expect(outcome, result.stderr).toBe("ok")
    })
  }
})
