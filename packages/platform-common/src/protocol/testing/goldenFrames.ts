// The golden frames of the protocol as values: every body, every event, every kind of input and of settings. The
// script `scripts/goldenFrames.ts` writes them to proto/testdata, where other implementations find them; a test
// compares. Maps have one entry and floats are exact, so that every implementation makes the same bytes.

import { create, type MessageInitShape } from "@bufbuild/protobuf"
import { EdgeFrameSchema, GoodbyeCode, NodeFrameSchema } from "../../gen/iop/v1/frame_pb.ts"
import { RejectCode } from "../../gen/iop/v1/register_pb.ts"
import {
  FailureCode,
  FinishReason,
  ProcessOutput_Channel,
  type RunEventSchema
} from "../../gen/iop/v1/run_event_pb.ts"
import { Role, type RunInputSchema, ToolChoice_Mode } from "../../gen/iop/v1/run_input_pb.ts"
import { CancelCode } from "../../gen/iop/v1/run_pb.ts"
import { AdapterState } from "../../gen/iop/v1/status_pb.ts"

type NodeBody = NonNullable<MessageInitShape<typeof NodeFrameSchema>["body"]>
type EdgeBody = NonNullable<MessageInitShape<typeof EdgeFrameSchema>["body"]>
type Event = NonNullable<MessageInitShape<typeof RunEventSchema>["event"]>

const FAMILY = "👩‍👩‍👧‍👦"
const GREETING = `안녕하세요 ${FAMILY} 한국어`
const bytes = (...values: ReadonlyArray<number>): Uint8Array => Uint8Array.from(values)

const event = (seq: number, body: Event, handle = 7): NodeBody => ({
  case: "runEvent",
  value: { handle, seq, event: body }
})

const runRequest = (input: MessageInitShape<typeof RunInputSchema>): EdgeBody => ({
  case: "runRequest",
  value: {
    runId: "run-0001",
    attempt: 1,
    handle: 7,
    adapter: "llama",
    target: "qwen3-8b",
    input,
    stream: true
  }
})

const nodeBodies: Readonly<Record<string, NodeBody>> = {
  "register-request": {
    case: "registerRequest",
    value: {
      protocolVersion: { major: 1, minor: 0 },
      token: "golden-frame-token",
      bootId: bytes(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255),
      agentName: "golden",
      agentVersion: "1.2.3",
      adapterKinds: ["mock", "openai"]
    }
  },
  "register-request-held-runs": {
    case: "registerRequest",
    value: {
      protocolVersion: { major: 1, minor: 0 },
      token: "golden-frame-token",
      bootId: bytes(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255),
      adapterKinds: ["mock"],
      heldRuns: [
        { runId: "run-0001", attempt: 1, firstUnackedSeq: 4, lastSeq: 9 },
        { runId: "run-0002", attempt: 2, firstUnackedSeq: 1, lastSeq: 0 }
      ]
    }
  },
  "node-status": {
    case: "nodeStatus",
    value: {
      configRevision: "sha256:1f0c",
      adapters: [
        {
          name: "llama",
          state: AdapterState.READY,
          targets: [
            { name: "qwen3-8b", capabilities: ["chat", "tools"], contextLength: 32_768 },
            { name: "bge-m3", capabilities: ["embedding"] }
          ],
          slots: 4,
          slotsInUse: 1
        },
        { name: "coder", state: AdapterState.UNAVAILABLE, reason: "my-agent: command not found", slots: 1 }
      ]
    }
  },
  "node-status-draining": { case: "nodeStatus", value: { configRevision: "sha256:1f0c", draining: true } },
  pong: { case: "pong", value: { nonce: 4_294_967_295 } },
  "pong-nonce-zero": { case: "pong", value: {} },
  goodbye: { case: "goodbye", value: { code: GoodbyeCode.SHUTDOWN, message: "the machine is going down" } },
  "event-started": event(1, { case: "started", value: { backendTarget: "qwen3-8b-q4_k_m" } }),
  "event-started-bare": event(1, { case: "started", value: {} }),
  "event-delta-text": event(2, { case: "delta", value: { content: { case: "text", value: GREETING } } }),
  "event-delta-text-empty": event(3, { case: "delta", value: { content: { case: "text", value: "" } } }),
  "event-delta-text-large-numbers": event(
    4_294_967_295,
    { case: "delta", value: { choice: 300, content: { case: "text", value: " word" } } },
    4_294_967_295
  ),
  "event-delta-logprobs": event(4, {
    case: "delta",
    value: {
      content: { case: "text", value: "녕" },
      logprobs: [
        {
          token: "녕",
          logprob: -0.25,
          bytes: bytes(0xeb, 0x85, 0x95),
          top: [
            { token: "녕", logprob: -0.25, bytes: bytes(0xeb, 0x85, 0x95) },
            { token: "\ufffd", logprob: -2.5, bytes: bytes(0xeb) }
          ]
        }
      ]
    }
  }),
  "event-delta-reasoning": event(5, {
    case: "delta",
    value: { choice: 1, content: { case: "reasoning", value: "Let me think. 생각 중…" } }
  }),
  "event-delta-refusal": event(6, {
    case: "delta",
    value: { content: { case: "refusal", value: "I can't help with that." } }
  }),
  "event-delta-tool-call-first": event(7, {
    case: "delta",
    value: {
      content: {
        case: "toolCall",
        value: { index: 0, id: "call_1", name: "get_weather", arguments: '{"city":' }
      }
    }
  }),
  "event-delta-tool-call-next": event(8, {
    case: "delta",
    value: { content: { case: "toolCall", value: { index: 0, arguments: '"서울"}' } } }
  }),
  "event-delta-stdout": event(9, {
    case: "delta",
    value: {
      content: {
        case: "processOutput",
        value: { channel: ProcessOutput_Channel.STDOUT, text: "ok\r\n\u001b[0m" }
      }
    }
  }),
  "event-delta-stderr": event(10, {
    case: "delta",
    value: {
      content: { case: "processOutput", value: { channel: ProcessOutput_Channel.STDERR, text: "warning\n" } }
    }
  }),
  "event-delta-embedding": event(11, {
    case: "delta",
    value: { content: { case: "embedding", value: { index: 1, values: [0.5, -0.25, 0, 1] } } }
  }),
  "event-usage": event(12, { case: "usage", value: { inputTokens: 120, outputTokens: 0 } }),
  "event-completed": event(13, {
    case: "completed",
    value: {
      finishReason: FinishReason.STOP,
      usage: { inputTokens: 120, outputTokens: 300, cachedInputTokens: 64, reasoningTokens: 200 }
    }
  }),
  "event-completed-choices": event(14, {
    case: "completed",
    value: {
      finishReason: FinishReason.TOOL_CALLS,
      choiceFinishReasons: { 1: FinishReason.LENGTH },
      rawFinishReason: "function_call"
    }
  }),
  "event-failed": event(15, {
    case: "failed",
    value: {
      code: FailureCode.ADAPTER_ERROR,
      message: "the server answered 503: model is loading",
      retryable: true,
      backendStatus: 503,
      backendCode: "model_loading",
      retryAfterMs: 5000
    }
  }),
  "event-failed-rejected": event(1, {
    case: "failed",
    value: { code: FailureCode.REJECTED, message: "no adapter named llama", retryable: true }
  }),
  "event-cancelled": event(16, { case: "cancelled", value: { reason: "the caller hung up" } })
}

const edgeBodies: Readonly<Record<string, EdgeBody>> = {
  "register-accepted": {
    case: "registerResponse",
    value: {
      result: {
        case: "accepted",
        value: {
          nodeId: "tower",
          alias: "gpu-1",
          edgeId: "home",
          linkEpoch: 9_007_199_254_740_993n,
          protocolVersion: { major: 1, minor: 0 },
          config: {
            revision: "sha256:1f0c",
            labels: { gpu: "rtx5090" },
            runtime: { slots: 4, drainTimeoutMs: 30_000, probeIntervalMs: 10_000 },
            adapters: [
              {
                name: "fake",
                slots: 2,
                settings: {
                  case: "mock",
                  value: { seed: 18_446_744_073_709_551_615n, scripts: { echo: { delay: 5 } } }
                }
              },
              {
                name: "llama",
                slots: 4,
                settings: {
                  case: "openai",
                  value: {
                    baseUrl: "http://127.0.0.1:8000/v1",
                    apiKey: "golden-frame-key",
                    headers: { "x-team": "home" },
                    extra: { verify: true }
                  }
                }
              },
              {
                name: "ollama",
                slots: 1,
                settings: {
                  case: "ollama",
                  value: { baseUrl: "http://127.0.0.1:11434", keepAlive: "10m", numCtx: 8192 }
                }
              },
              {
                name: "coder",
                slots: 1,
                targets: ["default", "review"],
                settings: {
                  case: "cli",
                  value: {
                    command: ["my-agent", "--print"],
                    profiles: [
                      {
                        name: "review",
                        command: ["my-agent", "--review", "한글 인자"],
                        workingDirectory: "/srv/review",
                        envAllow: ["PATH", "HOME"],
                        env: { MODE: "review" }
                      }
                    ]
                  }
                }
              },
              {
                name: "whisper",
                slots: 1,
                targets: ["large"],
                settings: {
                  case: "custom",
                  value: { kind: "asr", settings: { device: [0, null, "cuda:1"] } }
                }
              }
            ]
          },
          heartbeatIntervalMs: 5000,
          heartbeatSuspectAfter: 2,
          heartbeatDeadAfter: 3,
          limits: { maxNodeFrameBytes: 1_048_576, maxEdgeFrameBytes: 33_554_432, runWindowBytes: 262_144 },
          heldRuns: [
            {
              runId: "run-0001",
              attempt: 1,
              decision: { case: "resume", value: { afterSeq: 6, handle: 1 } }
            },
            {
              runId: "run-0002",
              attempt: 2,
              decision: { case: "cancel", value: { reason: "the run has ended" } }
            }
          ]
        }
      }
    }
  },
  "register-rejected": {
    case: "registerResponse",
    value: {
      result: {
        case: "rejected",
        value: {
          code: RejectCode.ALREADY_CONNECTED,
          message: "the node is already connected from 192.0.2.7:50122",
          retryable: true,
          retryAfterMs: 30_000
        }
      }
    }
  },
  "register-rejected-version": {
    case: "registerResponse",
    value: {
      result: {
        case: "rejected",
        value: {
          code: RejectCode.UNSUPPORTED_VERSION,
          message: "the edge speaks protocol version 1, the node 2: update the edge",
          retryable: false
        }
      }
    }
  },
  ping: { case: "ping", value: { nonce: 1 } },
  "ping-nonce-zero": { case: "ping", value: {} },
  "run-request-chat": runRequest({
    kind: {
      case: "chat",
      value: {
        messages: [
          { role: Role.SYSTEM, parts: [{ content: { case: "text", value: "Be brief." } }] },
          {
            role: Role.USER,
            name: "지수",
            parts: [
              { content: { case: "text", value: GREETING } },
              {
                content: {
                  case: "image",
                  value: { source: { case: "url", value: "https://example.com/a.png" }, detail: "low" }
                }
              },
              {
                content: {
                  case: "image",
                  value: {
                    source: { case: "data", value: bytes(0x89, 0x50, 0x4e, 0x47) },
                    mediaType: "image/png"
                  }
                }
              },
              { content: { case: "audio", value: { data: bytes(0, 255), format: "wav" } } },
              {
                content: {
                  case: "file",
                  value: { source: { case: "fileId", value: "file-1" }, filename: "보고서.pdf" }
                }
              }
            ]
          },
          {
            role: Role.ASSISTANT,
            reasoning: "I need the weather.",
            toolCalls: [{ id: "call_1", name: "get_weather", arguments: '{"city":"서울"}' }]
          },
          {
            role: Role.TOOL,
            toolCallId: "call_1",
            parts: [{ content: { case: "text", value: '{"temp":21}' } }]
          }
        ],
        tools: [
          {
            kind: {
              case: "function",
              value: {
                name: "get_weather",
                description: "The weather of a city.",
                parametersSchema: '{"type":"object"}',
                strict: false
              }
            }
          },
          { kind: { case: "custom", value: { kind: "grammar", definition: { syntax: "lark" } } } }
        ],
        toolChoice: { mode: ToolChoice_Mode.FUNCTION, function: "get_weather" },
        parallelToolCalls: false,
        sampling: {
          temperature: 0,
          topP: 0.5,
          topK: 40,
          minP: 0.25,
          maxTokens: 256,
          n: 2,
          seed: -9_007_199_254_740_993n,
          stop: ["\n\n", "끝"],
          frequencyPenalty: -0.5,
          presencePenalty: 0.5,
          repetitionPenalty: 1,
          logprobs: true,
          topLogprobs: 2,
          logitBias: { "50256": -100 }
        },
        responseFormat: {
          kind: { case: "jsonSchema", value: { name: "answer", schema: '{"type":"object"}', strict: true } }
        },
        reasoningEffort: "high"
      }
    },
    parameters: { deep: [1, -0.5, true, null, "한국어", [], {}, { key: [FAMILY] }] }
  }),
  "run-request-chat-grammar": runRequest({
    kind: {
      case: "chat",
      value: {
        messages: [{ role: Role.USER, parts: [{ content: { case: "text", value: "hi" } }] }],
        toolChoice: { mode: ToolChoice_Mode.NONE },
        responseFormat: {
          kind: { case: "grammar", value: { syntax: "gbnf", definition: 'root ::= "yes" | "no"' } }
        }
      }
    }
  }),
  "run-request-chat-text-format": runRequest({
    kind: {
      case: "chat",
      value: {
        messages: [{ role: Role.USER, parts: [{ content: { case: "text", value: "hi" } }] }],
        responseFormat: { kind: { case: "text", value: {} } }
      }
    }
  }),
  "run-request-chat-json-object": runRequest({
    kind: {
      case: "chat",
      value: {
        messages: [
          { role: Role.DEVELOPER, parts: [{ content: { case: "text", value: "Answer in JSON." } }] },
          {
            role: Role.USER,
            parts: [
              {
                content: { case: "file", value: { source: { case: "url", value: "https://example.com/a" } } }
              },
              {
                content: {
                  case: "file",
                  value: { source: { case: "data", value: bytes(1, 2, 3) }, mediaType: "application/pdf" }
                }
              }
            ]
          },
          { role: Role.ASSISTANT, refusal: "No." }
        ],
        responseFormat: { kind: { case: "jsonObject", value: {} } }
      }
    }
  }),
  "run-request-prompt": {
    case: "runRequest",
    value: {
      runId: "run-0002",
      attempt: 2,
      handle: 4_294_967_295,
      adapter: "coder",
      target: "default",
      input: {
        kind: {
          case: "prompt",
          value: {
            text: "def add(a, b):\n    return ",
            suffix: "\n# 끝",
            echo: true,
            sampling: { maxTokens: 16 }
          }
        }
      },
      session: "session-1",
      deadlineMs: 60_000,
      traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    }
  },
  "run-request-embed": runRequest({
    kind: {
      case: "embed",
      value: {
        items: [
          { content: { case: "text", value: GREETING } },
          { content: { case: "tokens", value: { tokens: [0, 127, 128, 100_000] } } }
        ],
        dimensions: 256
      }
    }
  }),
  "run-ack": { case: "runAck", value: { handle: 7, seq: 300 } },
  "run-cancel": {
    case: "runCancel",
    value: { handle: 7, code: CancelCode.CALLER, reason: "the caller hung up" }
  },
  drain: { case: "drain", value: { timeoutMs: 30_000, reason: "the edge is being updated" } },
  goodbye: { case: "goodbye", value: { code: GoodbyeCode.REPLACED, message: "a newer link of this node" } }
}

/** The golden frames from a node, by name. */
export const goldenNodeFrames = new Map(
  Object.entries(nodeBodies).map(([name, body]) => [name, create(NodeFrameSchema, { body })])
)

/** The golden frames from the edge, by name. */
export const goldenEdgeFrames = new Map(
  Object.entries(edgeBodies).map(([name, body]) => [name, create(EdgeFrameSchema, { body })])
)
