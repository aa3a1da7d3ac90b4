import { assert, describe, it } from "@effect/vitest"
import { describeDialFailure } from "./DialError.ts"

const failure = (code: string, message = code) => Object.assign(new Error(message), { code })

describe("describeDialFailure", () => {
  const plain = { host: "edge.example", port: 7610 }
  const secure = { ...plain, tls: {} }
  const cases = [
    [plain, failure("ECONNREFUSED"), "refused", "nothing listens on that port, or a firewall refuses it"],
    [plain, failure("ENOTFOUND"), "unresolved", "the name edge.example is not known; is it spelled right?"],
    [
      plain,
      failure("EAI_AGAIN"),
      "unresolved",
      "the name edge.example cannot be resolved now; does name resolution work on this machine?"
    ],
    [plain, failure("ETIMEDOUT"), "timeout", "no answer; is the address right and the port open?"],
    [plain, failure("EHOSTUNREACH"), "unreachable", "there is no way to that address from this machine"],
    [plain, failure("ENETUNREACH"), "unreachable", "there is no way to that address from this machine"],
    [plain, failure("ECONNRESET"), "other", "the peer cut the connection at once"],
    [
      secure,
      failure("ECONNRESET"),
      "tls",
      "the peer cut the connection during the TLS handshake; does it speak TLS?"
    ],
    [secure, failure("ERR_SSL_SOMETHING_NEW", "something new"), "tls", "TLS failed: something new"],
    [plain, failure("EMFILE", "too many open files"), "other", "too many open files"],
    [
      plain,
      new AggregateError([failure("ECONNREFUSED"), failure("ENETUNREACH")]),
      "refused",
      "nothing listens on that port, or a firewall refuses it"
    ]
  ] as const
  for (const [target, cause, kind, what] of cases) {
    it(`says of ${cause instanceof AggregateError ? "several errors" : cause.code} (${target === secure ? "TLS" : "TCP"}): ${what}`, () => {
      const error = describeDialFailure(target, cause)
      assert.strictEqual(error.message, `cannot connect to edge.example:7610: ${what}`)
      assert.strictEqual(error.kind, kind)
      assert.strictEqual(error.cause, cause)
    })
  }
})
