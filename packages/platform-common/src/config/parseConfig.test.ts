import { assert, describe, it } from "@effect/vitest"
import { Duration, Redacted } from "effect"
import { errorsOf, loaded, warningsOf } from "./testing/problemsOf.ts"

const quiet = "listen: { nodes: { host: 127.0.0.1 } }\n"

const longToken = "0123456789abcdef"
const adapters = "adapters: [{ name: m, type: mock }]"

/** A file with one node, whose keys are given. */
const node = (keys: string) => `${quiet}nodes:\n  - { ${keys} }\n`

describe("values", () => {
  it("fills in every default", () => {
    const { config, warnings } = loaded(node(`id: tower, token: "${longToken}", ${adapters}`))
    assert.deepStrictEqual(warnings, [])
    assert.strictEqual(config.edge.id, "edge")
    assert.deepStrictEqual(config.listen.http, { host: "127.0.0.1", port: 7611, insecure: false, hosts: [] })
    assert.strictEqual(config.link.run_window, 262_144)
    assert.isTrue(Duration.equals(config.runs.queue_timeout, Duration.seconds(60)))
    assert.strictEqual(config.runs.total_timeout, undefined)
    const [tower] = config.nodes
    assert.strictEqual(tower?.alias, "tower")
    assert.strictEqual(tower?.token && Redacted.value(tower.token), longToken)
    assert.deepStrictEqual(tower?.labels, {})
    assert.deepStrictEqual(config.routes, [])
  })

  it("reads durations and sizes", () => {
    const { config } = loaded(
      `${node("id: a, token: t")}runs: { queue_timeout: 500ms, total_timeout: 1.5h, relay_log: 2MiB }\nlink: { resume_grace: 0s, run_window: 65536 }\n`
    )
    assert.strictEqual(Duration.toMillis(config.runs.queue_timeout), 500)
    assert.strictEqual(config.runs.total_timeout && Duration.toMillis(config.runs.total_timeout), 5_400_000)
    assert.strictEqual(config.runs.relay_log, 2 * 1024 * 1024)
    assert.strictEqual(Duration.toMillis(config.link.resume_grace), 0)
    assert.strictEqual(config.link.run_window, 65_536)
  })

  it("reads secrets from files, relative to the configuration, without the last line break", () => {
    const { config } = loaded(
      `${node("id: a, token_file: tokens/a")}api_keys: [{ name: k, key_file: /run/key }]\n`,
      { files: { "/etc/iop/tokens/a": "\ufefft0ken\r\n", "/run/key": "k3y\n" } }
    )
    assert.strictEqual(config.nodes[0]?.token && Redacted.value(config.nodes[0].token), "t0ken")
    assert.strictEqual(config.nodes[0]?.token_file, "/etc/iop/tokens/a")
    assert.strictEqual(config.api_keys[0]?.key && Redacted.value(config.api_keys[0].key), "k3y")
  })

  it("takes the hash of a token in either case", () => {
    const { config } = loaded(node(`id: a, token_sha256: ${"AB".repeat(32)}`))
    assert.strictEqual(config.nodes[0]?.token_sha256, "ab".repeat(32))
    assert.strictEqual(config.nodes[0]?.token, undefined)
  })

  it("aliases save repetition", () => {
    const { config } = loaded(
      `${quiet}nodes:\n  - { id: a, token: ta, adapters: &same [{ name: m, type: mock }] }\n  - { id: b, token: tb, adapters: *same }\n`
    )
    assert.deepStrictEqual(config.nodes[1]?.adapters, config.nodes[0]?.adapters)
    assert.strictEqual(config.nodes[1]?.adapters[0]?.name, "m")
  })
})

describe("tokens", () => {
  it("CF1 an empty, blank, missing or expanded-to-nothing token is named with its node", () => {
    const text = `${quiet}nodes:
  - { id: quoted, token: "" }
  - { id: blank, token: "  \\t " }
  - { id: missing }
  - id: nothing
    token:
  - { id: variable, token: "\${EMPTY}" }
  - { id: file, token_file: empty }
`
    assert.deepStrictEqual(errorsOf(text, { env: { EMPTY: "" }, files: { "/etc/iop/empty": "\n" } }), [
      `3:26  nodes[0].token: the token of node "quoted" is empty`,
      `4:25  nodes[1].token: the token of node "blank" is empty`,
      `5:5  nodes[2].token: node "missing" has no token; give token, token_file or token_sha256`,
      `7:11  nodes[3].token: the token of node "nothing" is empty`,
      `8:28  nodes[4].token: the token of node "variable" is empty (from EMPTY)`,
      `9:29  nodes[5].token: the token of node "file" is empty (from its token_file)`
    ])
  })

  it("CF2 a token that occurs twice names both nodes and lines, whatever form it has", () => {
    const text = `${quiet}nodes:
  - { id: a, token: sekrit }
  - { id: b, token: sekrit }
  - { id: c, token_file: c }
  - { id: d, token_sha256: ${"2b2d3c0bd5d9d2f0bb0c4ae1b3d1a4d1".repeat(2)} }
  - { id: e, token_sha256: ${"2B2D3C0BD5D9D2F0BB0C4AE1B3D1A4D1".repeat(2)} }
  - { id: f, token: "\${T}" }
`
    const errors = errorsOf(text, { env: { T: "sekrit" }, files: { "/etc/iop/c": "sekrit\n" } })
    assert.deepStrictEqual(errors, [
      `4:21  nodes[1].token: node "b" (line 4) has the same secret as node "a" (line 3); give each its own`,
      `5:26  nodes[2].token: node "c" (line 5) has the same secret as node "a" (line 3); give each its own`,
      `7:28  nodes[4].token_sha256: node "e" (line 7) has the same secret as node "d" (line 6); give each its own`,
      `8:21  nodes[5].token: node "f" (line 8) has the same secret as node "a" (line 3); give each its own`
    ])
    assert.notInclude(errors.join(), "sekrit")
  })

  it("CF1 a node has one source of its token, and the file must be there", () => {
    const text = `${quiet}nodes:
  - { id: a, token: t, token_file: x }
  - { id: b, token_file: gone }
`
    assert.deepStrictEqual(errorsOf(text, { files: { "/etc/iop/x": "y" } }), [
      `3:24  nodes[0].token_file: node "a" has token and token_file; give one of them`,
      `4:26  nodes[1].token_file: cannot read "/etc/iop/gone": no such file`
    ])
  })

  it("CF6 a token that could not be sent is refused without being shown", () => {
    for (const token of ["two words", "zwölf", "line\\nbreak", "x".repeat(5000)]) {
      const errors = errorsOf(node(`id: a, token: "${token}"`))
      assert.strictEqual(errors.length, 1)
      assert.match(errors[0] ?? "", /^3:21 {2}nodes\[0\]\.token: expected a secret .*, found a text$/)
      assert.notInclude(errors[0], token)
    }
  })
})

describe("names", () => {
  it("CF3 an id or alias means one node: ids, aliases and one against the other", () => {
    const text = `${quiet}nodes:
  - { id: a, token: t1, alias: x }
  - { id: a, token: t2 }
  - { id: c, token: t3, alias: x }
  - { id: d, token: t4, alias: c }
  - { id: x, token: t5 }
  - { id: same, token: t6, alias: same }
`
    assert.deepStrictEqual(errorsOf(text), [
      `3:32  nodes[0].alias: the alias "x" of node "a" is already the id of nodes[4] (line 7); a name means one node`,
      `4:11  nodes[1].id: the id "a" is already the id of nodes[0] (line 3); a name means one node`,
      `5:32  nodes[2].alias: the alias "x" of node "c" is already the id of nodes[4] (line 7); a name means one node`,
      `6:32  nodes[3].alias: the alias "c" of node "d" is already the id of nodes[2] (line 5); a name means one node`
    ])
  })

  it("CF6 what YAML reads as a number, boolean or null is to be quoted", () => {
    const text = `${quiet}nodes:
  - { id: 007, token: 12345, labels: { gpu: 4090, on: true, none: ~ } }
  - { id: null, token: 1e5 }
  - { id: true, token: 0x1F }
api_keys: [{ name: k, key: 99 }]
`
    assert.deepStrictEqual(errorsOf(text), [
      "3:11  nodes[0].id: YAML reads this as a number; quote it",
      "3:23  nodes[0].token: YAML reads this as a number; quote it",
      "3:45  nodes[0].labels.gpu: YAML reads this as a number; quote it",
      "3:55  nodes[0].labels.on: YAML reads this as true or false; quote it",
      "3:67  nodes[0].labels.none: YAML reads this as null; quote it",
      "4:11  nodes[1].id: YAML reads this as null; quote it",
      "4:24  nodes[1].token: YAML reads this as a number; quote it",
      "5:11  nodes[2].id: YAML reads this as true or false; quote it",
      "5:24  nodes[2].token: YAML reads this as a number; quote it",
      "6:28  api_keys[0].key: YAML reads this as a number; quote it"
    ])
    assert.deepStrictEqual(errorsOf(`${quiet}nodes:\n  - { id: a, token: t, labels: { 12: x } }\n`), [
      "3:34  nodes[0].labels: YAML does not read this key as a text; quote it"
    ])
  })

  it("CF3 adapters: unique in a node, one type for a name", () => {
    const text = `${quiet}nodes:
  - id: a
    token: ta
    adapters: [{ name: m, type: mock }, { name: m, type: mock }]
  - id: b
    token: tb
    adapters: [{ name: m, type: ollama, base_url: "http://b" }, { name: v, type: custom, kind: one }]
  - id: c
    token: tc
    adapters: [{ name: v, type: custom, kind: two }, { name: c, type: cli }]
`
    assert.deepStrictEqual(errorsOf(text), [
      `5:49  nodes[0].adapters[1].name: "m" is already an adapter of node "a" (line 5); give each its own name`,
      `8:33  nodes[1].adapters[0].type: the adapter "m" is ollama on node "b" but mock on node "a" (line 5); one name is one adapter`,
      `11:33  nodes[2].adapters[0].type: the adapter "v" is custom (two) on node "c" but custom (one) on node "b" (line 8); one name is one adapter`,
      "11:54  nodes[2].adapters[1].command: a cli adapter needs command or profiles"
    ])
  })
})

describe("variables and overrides", () => {
  it("CF4 every unset variable is named with its path", () => {
    const text = `edge: { id: "\${EDGE}" }
${quiet}nodes:
  - { id: "a-\${A}-\${B}", token: "\${T}" }
`
    assert.deepStrictEqual(errorsOf(text, { env: { B: "set" } }), [
      `1:13  edge.id: the variable EDGE is not set; set it, or give a default: \${EDGE:-default}`,
      `4:11  nodes[0].id: the variable A is not set; set it, or give a default: \${A:-default}`,
      "4:33  nodes[0].token: the variable T is not set; set it in the environment that the edge starts in"
    ])
  })

  it("CF4 fills in, defaults and escapes", () => {
    const text = `edge: { id: "\${EDGE:-home}" }
listen: { nodes: { host: 127.0.0.1 }, http: { port: "\${PORT}", insecure: "\${OPEN}" } }
nodes:
  - { id: "n\${N}", token: "$\${T}-$-\${T}", adapters: [{ name: m, type: mock, slots: "\${N}" }] }
`
    const { config } = loaded(text, { env: { PORT: "0", OPEN: "true", N: "3", T: "x", EDGE: "" } })
    assert.strictEqual(config.edge.id, "home")
    assert.deepStrictEqual(config.listen.http, { host: "127.0.0.1", port: 0, insecure: true, hosts: [] })
    assert.strictEqual(config.nodes[0]?.id, "n3")
    assert.strictEqual(config.nodes[0]?.adapters[0]?.slots, 3)
    assert.strictEqual(config.nodes[0]?.token && Redacted.value(config.nodes[0].token), `\${T}-$-x`)
  })

  it("CF4 an unfinished reference is an error", () => {
    for (const text of [`\${A`, `\${}`, `\${1A}`, `\${A-b}`]) {
      const [error, ...rest] = errorsOf(`edge: { id: "${text}" }\n${node("id: a, token: t")}`, {
        env: { A: "x" }
      })
      assert.deepStrictEqual(rest, [])
      assert.match(error ?? "", /edge\.id: \$\{ starts a variable/)
    }
  })

  it("flags win over variables, variables over the file", () => {
    const text = node("id: a, token: t").replace("nodes: { host: 127.0.0.1 }", "$&, http: { port: 1 }")
    const port = (env: Record<string, string>, overrides: Record<string, string>) =>
      loaded(text, { env, overrides }).config.listen.http.port
    const env = { IOP_EDGE_LISTEN_HTTP_PORT: "2" }
    assert.strictEqual(port({}, {}), 1)
    assert.strictEqual(port(env, {}), 2)
    assert.strictEqual(port({ IOP_EDGE_LISTEN_HTTP_PORT: "" }, {}), 1)
    assert.strictEqual(port(env, { "listen.http.port": "3" }), 3)
  })

  it("overrides reach every kind of value, also where the file has nothing", () => {
    const { config } = loaded("nodes: [{ id: a, token: t }]", {
      env: {
        IOP_EDGE_LISTEN_NODES_HOST: "127.0.0.1",
        IOP_EDGE_RUNS_QUEUE_TIMEOUT: "7s",
        IOP_EDGE_RUNS_CIRCUIT_FAILURES: "9",
        IOP_EDGE_RUNS_RELAY_LOG: "65536",
        IOP_EDGE_LOG_LEVEL: "debug",
        IOP_EDGE_LISTEN_HTTP_INSECURE: "true"
      }
    })
    assert.strictEqual(Duration.toMillis(config.runs.queue_timeout), 7000)
    assert.strictEqual(config.runs.circuit.failures, 9)
    assert.strictEqual(config.runs.relay_log, 65_536)
    assert.strictEqual(config.log.level, "debug")
    assert.isTrue(config.listen.http.insecure)
  })

  it("CF6 a wrong override names where it came from and not its value", () => {
    assert.deepStrictEqual(
      errorsOf(node("id: a, token: t"), {
        env: { IOP_EDGE_LISTEN_HTTP_PORT: "seven" },
        overrides: { "log.level": "loud", "listen.http.prt": "1" }
      }).toSorted(),
      [
        "the variable IOP_EDGE_LISTEN_HTTP_PORT  listen.http.port: expected a whole number from 0 to 65535, found a text",
        "the command line  log.level: expected one of trace, debug, info, warn, error, found a text",
        "the command line  listen.http.prt: no setting of this name; did you mean listen.http.port?"
      ].toSorted()
    )
  })
})

describe("keys and values", () => {
  it("CF5 an unknown key names the nearest one that is known there", () => {
    const text = `${quiet}node: []
nodes:
  - id: a
    token: t
    adpaters: []
    runtime: { slot: 1 }
    adapters:
      - { name: m, type: mock, base_url: "http://x", sed: 1 }
      - { name: o, type: openai, baseUrl: "http://x" }
`
    assert.deepStrictEqual(errorsOf(text), [
      "2:1  node: unknown key; did you mean nodes?",
      "6:5  nodes[0].adpaters: unknown key; did you mean adapters?",
      "7:16  nodes[0].runtime.slot: unknown key; did you mean slots?",
      "9:32  nodes[0].adapters[0].base_url: unknown key; known here: name, slots, targets, type, seed, scripts",
      "9:54  nodes[0].adapters[0].sed: unknown key; did you mean seed?",
      "10:9  nodes[0].adapters[1].base_url: is missing",
      "10:34  nodes[0].adapters[1].baseUrl: unknown key; did you mean base_url?"
    ])
  })

  it("CF6 wrong types and ranges say what was expected and what was found", () => {
    const text = `listen: { nodes: { host: 127.0.0.1, port: 70000 }, http: { port: -1 }, ops: { port: 1.5 } }
nodes:
  - id: a
    token: t
    labels: [gpu]
    runtime: { slots: four, drain_timeout: 30 }
    adapters:
      - { name: m, type: mock, slots: 0, targets: one }
      - { name: n, type: mocks }
      - { name: o }
      - none
link: { run_window: 1KB, heartbeat_interval: 0s, dead_after: [] }
runs: { queue_timeout: 30 parsecs, idle_timeout: 600h, circuit: 5 }
log: { text: "yes" }
edge:
`
    assert.deepStrictEqual(errorsOf(text), [
      "1:43  listen.nodes.port: expected a whole number from 0 to 65535, found the number 70000",
      "1:66  listen.http.port: expected a whole number from 0 to 65535, found the number -1",
      "1:85  listen.ops.port: expected a whole number from 0 to 65535, found the number 1.5",
      "5:13  nodes[0].labels: expected a map of label names to texts, found a list",
      `6:23  nodes[0].runtime.slots: expected a whole number from 1 to 10000, found the text "four"`,
      "6:44  nodes[0].runtime.drain_timeout: expected a duration with its unit, such as 0s, 500ms, 30s, 5m or 1h, found the number 30",
      "8:39  nodes[0].adapters[0].slots: expected a whole number from 1 to 10000, found the number 0",
      "8:51  nodes[0].adapters[0].targets: expected a list of target names, found a text",
      `9:26  nodes[0].adapters[1].type: expected one of mock, openai, ollama, cli, custom, found the text "mocks"; did you mean mock?`,
      "10:9  nodes[0].adapters[2].type: is missing; expected one of mock, openai, ollama, cli, custom",
      "11:9  nodes[0].adapters[3]: expected an adapter: a map with name, type and the settings of that type, found a text",
      `12:21  link.run_window: expected a size from 4KiB to 64MiB, such as 256KiB, 1MiB or a number of bytes, found the text "1KB"`,
      `12:46  link.heartbeat_interval: expected a duration above zero with its unit, such as 500ms, 30s, 5m or 1h, found the text "0s"`,
      "12:62  link.dead_after: expected a whole number from 1 to 1000, found a list",
      `13:24  runs.queue_timeout: expected a duration above zero with its unit, such as 500ms, 30s, 5m or 1h, found the text "30 parsecs"`,
      `13:50  runs.idle_timeout: expected a duration of at most 24 days, found the text "600h"`,
      "13:65  runs.circuit: expected a map, found a number",
      `14:14  log.text: expected true or false, found the text "yes"`,
      "15:6  edge: is empty; expected a map"
    ])
  })

  it("CF12 a base_url is http or https and never shown", () => {
    const text = `${quiet}nodes:
  - id: a
    token: t
    adapters:
      - { name: a, type: openai, base_url: "ftp://user:sekrit@host" }
      - { name: b, type: openai, base_url: "http://user:sekrit@host/v1" }
      - { name: c, type: ollama, base_url: "localhost:11434" }
      - { name: d, type: ollama, base_url: "http://" }
      - { name: e, type: ollama, base_url: 11434 }
tracing: { otlp_url: "http://me:sekrit@collector" }
`
    const errors = errorsOf(text)
    const http = "expected an address that starts with http:// or https://, found a text"
    const plain =
      "expected an address without user and password; put them into api_key or headers, found a text"
    assert.deepStrictEqual(errors, [
      `6:44  nodes[0].adapters[0].base_url: ${http}`,
      `7:44  nodes[0].adapters[1].base_url: ${plain}`,
      `8:44  nodes[0].adapters[2].base_url: ${http}`,
      `9:44  nodes[0].adapters[3].base_url: ${http}`,
      "10:44  nodes[0].adapters[4].base_url: YAML reads this as a number; quote it",
      `11:22  tracing.otlp_url: ${plain}`
    ])
    assert.notInclude(errors.join(), "sekrit")
  })

  it("figures that make no sense together", () => {
    assert.deepStrictEqual(
      errorsOf(`${node("id: a, token: t")}link: { suspect_after: 3, max_register_frame: 2MiB }\n`),
      [
        "4:24  link.suspect_after: suspect_after (3) must be less than dead_after (3)",
        "4:47  link.max_register_frame: max_register_frame must not be more than max_node_frame"
      ]
    )
    assert.deepStrictEqual(
      warningsOf(`${node(`id: a, token: "${longToken}", ${adapters}`)}http: { max_body: 64MiB }\n`),
      [
        "http.max_body: http.max_body is more than link.max_edge_frame: the largest requests are accepted but fit into no frame to a node"
      ]
    )
  })
})

describe("routes", () => {
  const nodes = `${quiet}nodes:
  - id: tower
    token: "${longToken}"
    labels: { gpu: big }
    adapters: [{ name: llama, type: openai, base_url: "http://x", targets: [qwen, gemma] }]
`
  it("CF10 an unknown adapter and a model that is routed twice are errors", () => {
    const text = `${nodes}routes:
  - { model: a, adapter: lama, target: qwen }
  - { model: b, adapter: llama, target: qwen }
  - { model: b, adapter: llama, target: gemma }
`
    assert.deepStrictEqual(errorsOf(text), [
      `8:26  routes[0].adapter: the route "a": no node has the adapter "lama"; did you mean llama?`,
      `10:14  routes[2].model: the route "b" exists already (line 9); a model has one route`
    ])
    assert.deepStrictEqual(errorsOf(`${nodes}routes: [{ model: a, adapter: zzzzzz, target: x }]\n`), [
      `7:31  routes[0].adapter: the route "a": no node has the adapter "zzzzzz"; known here: llama`
    ])
  })

  it("CF10 labels that nobody has and targets that nobody lists are warnings", () => {
    const text = `${nodes}routes:
  - { model: a, adapter: llama, target: qwen, labels: { gpu: small } }
  - { model: b, adapter: llama, target: qwen, labels: { gpu: big } }
  - { model: c, adapter: llama, target: gema }
`
    assert.deepStrictEqual(warningsOf(text), [
      `routes[0].labels: the route "a" leads nowhere: no node with its adapter has these labels; node "tower" has gpu: "big"`,
      `routes[2].target: the route "c" leads nowhere: no node lists this target; did you mean gemma?`
    ])
    assert.deepStrictEqual(errorsOf(text), [])
  })
})

describe("keys and listeners", () => {
  it("CF15 keys: empty, unset, twice, the same as another or as a node's token", () => {
    const text = `${quiet}nodes: [{ id: a, token: sekrit }]
api_keys:
  - { name: empty, key: "" }
  - { name: unset, key: "\${KEY}" }
  - { name: token, key: sekrit }
  - { name: one, key: k3y }
  - { name: two, key: k3y }
  - { name: one, key: other }
  - { name: none }
`
    const errors = errorsOf(text)
    assert.deepStrictEqual(errors, [
      `4:25  api_keys[0].key: api key "empty" is empty`,
      "5:25  api_keys[1].key: the variable KEY is not set; set it in the environment that the edge starts in",
      `6:25  api_keys[2].key: api key "token" (line 6) has the same secret as node "a" (line 2); give each its own`,
      `8:23  api_keys[4].key: api key "two" (line 8) has the same secret as api key "one" (line 7); give each its own`,
      `9:13  api_keys[5].name: "one" is already the name of a key in line 7`,
      `10:5  api_keys[6].key: api key "none" has no key; give key or key_file`
    ])
    assert.notInclude(errors.join(), "sekrit")
    assert.notInclude(errors.join(), "k3y")
  })

  it("HTTP and ops beyond loopback need keys or a word", () => {
    const open = (name: string, more = "") =>
      `listen: { nodes: { host: 127.0.0.1 }, ${name}: { host: 0.0.0.0${more} } }\nnodes: [{ id: a, token: t }]\n`
    for (const name of ["http", "ops"]) {
      const errors = errorsOf(open(name))
      assert.strictEqual(errors.length, 1)
      assert.match(
        errors[0] ?? "",
        new RegExp(`listen\\.${name}\\.host: listens beyond this machine, but there are no api_keys`)
      )
      assert.deepStrictEqual(errorsOf(open(name, ", insecure: true")), [])
      assert.deepStrictEqual(errorsOf(`${open(name)}api_keys: [{ name: k, key: k3y }]\n`), [])
    }
    for (const host of ["localhost", "127.0.0.2", "'::1'"]) {
      assert.deepStrictEqual(errorsOf(open("http").replace("0.0.0.0", host)), [])
    }
    assert.strictEqual(errorsOf(open("http").replace("0.0.0.0", "'::'")).length, 1)
  })

  it("the default listener of nodes warns, with TLS it does not, and TLS needs its files", () => {
    assert.match(warningsOf("nodes: [{ id: a, token: t }]").join(), /^listen\.nodes\.host: .*without tls/)
    const tls = `listen: { nodes: { tls: { cert_file: c.pem, key_file: k.pem } } }\nnodes: [{ id: a, token: "${longToken}", ${adapters} }]\n`
    const files = { "/etc/iop/c.pem": "x", "/etc/iop/k.pem": "x" }
    const { config, warnings } = loaded(tls, { files })
    assert.deepStrictEqual(warnings, [])
    assert.strictEqual(config.listen.nodes.tls?.cert_file, "/etc/iop/c.pem")
    assert.deepStrictEqual(errorsOf(tls), [
      `1:38  listen.nodes.tls.cert_file: cannot read "/etc/iop/c.pem": no such file`,
      `1:55  listen.nodes.tls.key_file: cannot read "/etc/iop/k.pem": no such file`
    ])
  })

  it("two listeners cannot have one port", () => {
    assert.deepStrictEqual(
      errorsOf(
        "listen: { nodes: { port: 7000, host: 0.0.0.0 }, http: { port: 7000 }, ops: { port: 0 } }\nnodes: [{ id: a, token: t }]"
      ),
      ["1:63  listen.http.port: port 7000 is already the port of listen.nodes; give each its own"]
    )
    assert.deepStrictEqual(
      errorsOf(
        "listen: { nodes: { port: 0 }, http: { port: 0 }, ops: { port: 0 } }\nnodes: [{ id: a, token: t }]"
      ),
      []
    )
  })
})

it("CF13 seven mistakes are seven errors, sorted by line", () => {
  const text = `listen: { nodes: { host: 127.0.0.1, port: 70000 } }
nodes:
  - { id: a, token: same, adpaters: [] }
  - { id: b, token: same }
  - { id: a, token: "" }
routes:
  - { model: m, adapter: none, target: t }
runs: { queue_timeout: soon }
`
  const errors = errorsOf(text)
  assert.strictEqual(errors.length, 7)
  assert.deepStrictEqual(
    errors.map((error) => Number(error.split(":")[0])),
    [1, 3, 4, 5, 5, 7, 8]
  )
})

describe("nodes that can do little", () => {
  it("a short secret and a node without adapters are warnings", () => {
    const text = `${quiet}api_keys: [{ name: k, key: k3y }]
nodes:
  - { id: a, token: fifteen-letters, ${adapters} }
  - { id: b, token: "\${T}", ${adapters} }
  - { id: c, token: "sixteen-letters.", adapters: [] }
`
    assert.deepStrictEqual(errorsOf(text, { env: { T: "t" } }), [])
    const short = "has fewer than 16 characters and may be guessed; make one with: edge token"
    assert.deepStrictEqual(warningsOf(text, { env: { T: "t" } }), [
      `api_keys[0].key: api key "k" ${short}`,
      `nodes[0].token: the token of node "a" ${short}`,
      `nodes[1].token: the token of node "b" ${short}`,
      `nodes[2].adapters: node "c" has no adapters: it can join, but gets no run`
    ])
  })

  it("a bad id is told once, not as an alias too", () => {
    assert.deepStrictEqual(errorsOf(node("id: two words, token: t")), [
      "3:11  nodes[0].id: expected a name of 1 to 64 letters, digits, dots, hyphens and underscores that starts with a letter or digit, found a text"
    ])
  })

  it("an adapter of an unknown type is told what else is wrong with it", () => {
    const text = node("id: a, token: t, adapters: [{ name: m, type: mok, slots: 0 }, { slots: 1.5 }]")
    assert.deepStrictEqual(errorsOf(text), [
      `3:52  nodes[0].adapters[0].type: expected one of mock, openai, ollama, cli, custom, found the text "mok"; did you mean mock?`,
      "3:64  nodes[0].adapters[0].slots: expected a whole number from 1 to 10000, found the number 0",
      "3:69  nodes[0].adapters[1].name: is missing",
      "3:69  nodes[0].adapters[1].type: is missing; expected one of mock, openai, ollama, cli, custom",
      "3:78  nodes[0].adapters[1].slots: expected a whole number from 1 to 10000, found the number 1.5"
    ])
  })
})
