import { assert, describe, it } from "@effect/vitest"
import { Exit } from "effect"
import { CliError } from "effect/cli"
import { EdgeProblem } from "../admin/EdgeClient.ts"
import { CommandFailed, configFailed, failedBy, usageError } from "./CommandFailed.ts"
import { endOf } from "./runCli.ts"

const problem = (code: string) => new EdgeProblem({ code, message: "what it is" })

describe("the exit code of a command", () => {
  it("is 0 when all went well", () => {
    assert.deepStrictEqual(endOf(Exit.void), { code: 0, message: "" })
  })

  it("is 1 for a run that failed, 2 for a mistake, 3 for an edge that can't be reached, 130 for an interruption", () => {
    const failed = (error: CommandFailed) => endOf(Exit.fail(error)).code
    assert.strictEqual(failed(failedBy(problem("node_lost"))), 1)
    assert.strictEqual(failed(failedBy(problem("target_not_found"))), 1)
    assert.strictEqual(failed(failedBy(problem("invalid_request"))), 2)
    assert.strictEqual(failed(failedBy(problem("invalid_api_key"))), 2)
    assert.strictEqual(failed(failedBy(problem("not_found"))), 2)
    assert.strictEqual(failed(failedBy(problem("unreachable"))), 3)
    assert.strictEqual(failed(usageError("say which edge")), 2)
    assert.strictEqual(endOf(Exit.interrupt(1)).code, 130)
    assert.strictEqual(endOf(Exit.fail(new CliError.ShowHelp({ commandPath: ["edge"], errors: [] }))).code, 2)
  })

  it("comes with one sentence and no stack, unless the fault is ours", () => {
    assert.strictEqual(endOf(Exit.fail(failedBy(problem("node_lost")))).message, "edge: what it is")
    assert.strictEqual(endOf(Exit.fail(configFailed("edge.yaml:1:2  x: y"))).message, "edge.yaml:1:2  x: y")
    assert.strictEqual(endOf(Exit.fail(new CommandFailed({ message: "", exitCode: 1 }))).message, "")
    const hostile = new EdgeProblem({
      code: "adapter_error",
      message: "\u001b]0;mine\u0007\u001b[2J\u202egone"
    })
    assert.strictEqual(endOf(Exit.fail(failedBy(hostile))).message, "edge: ␛]0;mine␇␛[2J\ufffdgone")
    const fault = endOf(Exit.die(new Error("broken")))
    assert.strictEqual(fault.code, 1)
    assert.match(fault.message, /^internal error, please report it:\n[\s\S]*broken/)
  })
})
