// Calls a tool: the first that the run offers, or one of the script's own.

import type { ToolCallDelta } from "@iop/platform-common/protocol/RunEvent"
import { answer, cutText } from "./answer.ts"
import type { Script } from "./Script.ts"

/** Parameters: `tool` the name, `arguments` a JSON object, `calls` (1), `interval_ms` (0). */
export const tools: Script = {
  name: "tools",
  capabilities: ["chat", "tools"],
  play: (scriptRun) => {
    const { parameters, random, run, text } = scriptRun
    const name = parameters.text("tool") ?? firstTool(run.input) ?? "lookup"
    const json = JSON.stringify(parameters.value("arguments") ?? { query: text })
    const calls = parameters.count("calls", 1, 100)
    const deltas: Array<ToolCallDelta> = []
    for (let index = 0; index < calls; index++) {
      const id = `call_${random.between(0x1000_0000, 0x7fff_ffff).toString(16)}`
      deltas.push({ type: "delta", kind: "tool_call", choice: 0, index, id, name, arguments: "" })
      for (const piece of cutText(json, random)) {
        deltas.push({ type: "delta", kind: "tool_call", choice: 0, index, arguments: piece })
      }
    }
    return answer(scriptRun, deltas, { finishReason: "tool_calls" })
  }
}

const firstTool = (input: Parameters<Script["play"]>[0]["run"]["input"]): string | undefined => {
  if (input.kind.case !== "chat") return undefined
  for (const tool of input.kind.value.tools) {
    if (tool.kind.case === "function") return tool.kind.value.name
  }
  return undefined
}
