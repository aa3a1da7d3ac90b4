// CF14 and rule 7 on a running edge at its most talkative level: tokens, keys, expanded variables, prompts and answers
// are in no log, no listing, no metric and no error.
import { createHash } from "node:crypto"
import { describe, expect, it } from "vitest"
import { mockNodeConfig, tokenOf } from "./harness/config.ts"
import { RawNode } from "./harness/RawNode.ts"
import { useEdge } from "./harness/useEdge.ts"

const key = "client-key-0123456789-abcdef"
const env = { BACKEND_KEY: "backend-key-from-the-environment", HEADER: "header-from-the-environment" }
const prompt = "a prompt that is nobody's business"
const answer = "an answer that is nobody's business"

/** How the configuration refers to a variable. */
const variable = (name: string): string => `\${${name}}`

describe("an edge that logs everything", () => {
  const shared = useEdge(
    {
      nodes: [
        mockNodeConfig("tower", {
          adapters: [
            { name: "mock", type: "mock", slots: 2 },
            {
              name: "llama",
              type: "openai",
              base_url: "http://127.0.0.1:8000/v1",
              api_key: variable("BACKEND_KEY"),
              headers: { "x-secret": variable("HEADER") }
            }
          ]
        })
      ],
      api_keys: [{ name: "laptop", key }],
      log: { level: "trace" }
    },
    { key, env }
  )

  it("CF14 shows no secret in log, listings, metrics, explanations and errors", async () => {
    const { admin } = shared.edge
    const node = await shared.node("tower")
    // The node does get what it needs.
    const settings = node.accepted?.config?.adapters.find(({ name }) => name === "llama")?.settings
    expect(settings?.case === "openai" && settings.value.apiKey).toBe(env.BACKEND_KEY)
    const stream = await admin.stream({ adapter: "mock", target: "echo", prompt })
    const run = await node.nextRun()
    run.answer(answer)
    await stream.finish()
    const failing = await admin.stream({ adapter: "mock", target: "echo", prompt })
    ;(await node.nextRun()).started().delta(answer).failed("the backend is out of memory", false)
    await failing.finish()
    const wrong = await RawNode.connect(shared.cleanup, shared.edge.nodes)
    await wrong.handshake({ token: "a-wrong-token-of-a-stranger" })
    const base = shared.edge.admin.base
    const refused = await fetch(`${base}/admin/v1/nodes`, {
      headers: { authorization: "Bearer a-wrong-key" }
    })
    expect(refused.status).toBe(401)
    const broken = await fetch(`${base}/admin/v1/runs`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ adapter: "mock", target: 7, prompt })
    })
    expect(broken.status).toBe(400)
    const shown = [
      JSON.stringify(await admin.nodes()),
      JSON.stringify(await admin.runs()),
      JSON.stringify(await admin.explain("mock", "echo")),
      await admin.metricsText(),
      await refused.text(),
      await broken.text(),
      ...shared.edge.stdout,
      ...shared.edge.stderr
    ].join("\n")
    expect(shared.edge.stderr.length).toBeGreaterThan(3)
    const bootId = Buffer.from(node.bootId)
    const secrets = [
      key,
      tokenOf("tower"),
      ...Object.values(env),
      "a-wrong-token-of-a-stranger",
      "a-wrong-key"
    ]
    for (const secret of secrets) {
      expect(shown).not.toContain(secret)
      expect(shown).not.toContain(createHash("sha256").update(secret).digest("hex"))
    }
    for (const encoding of ["hex", "base64"] as const) expect(shown).not.toContain(bootId.toString(encoding))
    expect(shown).not.toContain(prompt)
    expect(shown).not.toContain(answer)
  })
})
