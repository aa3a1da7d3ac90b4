// Decides from the RegisterRequest alone whether a peer is one of the store's nodes. Who it is comes from its token
// and from nothing else that it says.
import { type RegisterRequest, RejectCode } from "@iop/platform-common/gen/iop/v1/register_pb"
import { PROTOCOL_VERSION } from "@iop/platform-common/protocol/version"
import type { NodeRecord } from "../node/NodeRecord.ts"
import type { NodeStore } from "../node/NodeStore.ts"

/** A refusal as the peer gets it. */
export interface Rejection {
  readonly code: RejectCode
  /** For a person. */
  readonly message: string
  readonly retryable: boolean
  /** 0 leaves it to the node. */
  readonly retryAfterMs: number
}

export type RegistrationCheck =
  | { readonly record: NodeRecord; readonly rejection?: undefined }
  | { readonly rejection: Rejection }

/** Random bytes of a boot id. */
const BOOT_ID_BYTES = 16
/** An edge that drains is gone or back after about this. */
const DRAINING_RETRY_MS = 5000

export const checkRegistration = (
  request: RegisterRequest,
  store: Pick<NodeStore["Service"], "findByToken">,
  draining: boolean
): RegistrationCheck => {
  const { protocolVersion: version } = request
  if (version === undefined) return malformed("the RegisterRequest has no protocol_version")
  if (version.major !== PROTOCOL_VERSION.major) {
    return reject(RejectCode.UNSUPPORTED_VERSION, unsupportedVersion(version.major, version.minor), false)
  }
  const record = store.findByToken(request.token)
  if (record === undefined) {
    return reject(
      RejectCode.UNKNOWN_TOKEN,
      "no node of this edge has this token; compare it with the token of the node in the edge's configuration",
      false
    )
  }
  if (request.bootId.length !== BOOT_ID_BYTES) {
    return malformed(
      `the boot_id has ${request.bootId.length} bytes, it must have ${BOOT_ID_BYTES} random ones`
    )
  }
  if (draining) {
    return reject(
      RejectCode.DRAINING,
      "the edge is stopping and takes no node; try again when it is back",
      true,
      DRAINING_RETRY_MS
    )
  }
  return { record }
}

/** The refusal of a peer that broke the protocol before it was registered. */
export const malformed = (message: string): { readonly rejection: Rejection } =>
  reject(RejectCode.MALFORMED, message, false)

/** The refusal of a second process, as long as the first one answers. */
export const alreadyConnected = (record: NodeRecord, address: string, retryAfterMs: number): Rejection => ({
  code: RejectCode.ALREADY_CONNECTED,
  message: `node ${record.id} is connected from ${address} and answers; a token is for one process, stop that one or give this one a token of its own`,
  retryable: true,
  retryAfterMs
})

const unsupportedVersion = (major: number, minor: number): string =>
  `the node speaks protocol version ${major}.${minor}, this edge speaks ${PROTOCOL_VERSION.major}.${PROTOCOL_VERSION.minor}; update the ${major < PROTOCOL_VERSION.major ? "node" : "edge"}`

const reject = (
  code: RejectCode,
  message: string,
  retryable: boolean,
  retryAfterMs = 0
): { readonly rejection: Rejection } => ({ rejection: { code, message, retryable, retryAfterMs } })
