// Who may use an HTTP listener. Keys are kept as digests only and compared in constant time; rights come from a key
// alone, never from an address.
import { createHash, timingSafeEqual } from "node:crypto"
import type { IncomingHttpHeaders } from "node:http"
import type { EdgeConfig } from "@iop/platform-common/config/EdgeConfig"
import { Redacted } from "effect"

/** The holders of keys. */
export interface ApiKeys {
  /**
   * The name of the key's holder; `open` when no keys are configured, so that whoever reaches the listener may use it;
   * undefined when there is no key or a wrong one.
   */
  readonly identify: (headers: IncomingHttpHeaders) => string | typeof open | undefined
}

/** No keys are configured. */
export const open = Symbol("open")

const digest = (secret: string): Uint8Array => createHash("sha256").update(secret, "utf8").digest()

/** The key of a request: `Authorization: Bearer` or `x-api-key`. */
const keyOf = (headers: IncomingHttpHeaders): string | undefined => {
  const bearer = /^bearer +(\S+)$/i.exec(headers.authorization ?? "")?.[1]
  if (bearer !== undefined) return bearer
  const header = headers["x-api-key"]
  return typeof header === "string" && header !== "" ? header : undefined
}

/** The keys of the file. */
export const makeApiKeys = (config: Pick<EdgeConfig, "api_keys">): ApiKeys => {
  const holders = config.api_keys.flatMap(({ name, key }) =>
    key === undefined ? [] : [{ name, digest: digest(Redacted.value(key)) }]
  )
  if (holders.length === 0) return { identify: () => open }
  return {
    identify: (headers) => {
      // Every holder is compared, and a missing key like a wrong one, so that the time says nothing.
      const given = digest(keyOf(headers) ?? "")
      let found: string | undefined
      for (const holder of holders) if (timingSafeEqual(given, holder.digest)) found = holder.name
      return found
    }
  }
}
