// The id by which a request is found again in the log. A caller's own is kept only when it can do no harm.
import { randomBytes } from "node:crypto"

/** At most 64 characters that mean nothing to a header, a log or a terminal. */
const plain = /^[A-Za-z0-9._-]{1,64}$/

/** The caller's id when it is short and plain, else a fresh one. */
export const requestId = (given: string | ReadonlyArray<string> | undefined): string =>
  typeof given === "string" && plain.test(given) ? given : `req_${randomBytes(12).toString("base64url")}`
