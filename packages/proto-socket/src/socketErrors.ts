// Says in words what the error codes of Node's sockets and of OpenSSL mean for a person who runs a box, and what to
// do about it. Used wherever a socket fails: dialling, accepting, and on an open connection.

/** The code of an error of Node or OpenSSL (`ECONNRESET`, `CERT_HAS_EXPIRED`), where it has one. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined
}

/** The text of anything thrown. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** True for a connection that was cut by the other side or on the way. */
export function isReset(error: unknown): boolean {
  const code = errorCode(error)
  return code === "ECONNRESET" || code === "EPIPE" || code === "ECONNABORTED"
}

const LOST_CODES: ReadonlySet<string> = new Set([
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "EHOSTDOWN",
  "ENETUNREACH",
  "ENETDOWN",
  "ENETRESET"
])

/** True for an open connection that the network gave up: the peer's machine or the way to it is gone. */
export function isLost(error: unknown): boolean {
  return LOST_CODES.has(errorCode(error) ?? "")
}

const TLS_SENTENCES: ReadonlyMap<string, string> = new Map([
  ["CERT_HAS_EXPIRED", "the peer's certificate has expired; renew it, or check this machine's clock"],
  ["CERT_NOT_YET_VALID", "the peer's certificate is not valid yet; check this machine's clock"],
  [
    "DEPTH_ZERO_SELF_SIGNED_CERT",
    "the peer's certificate is self-signed and not trusted here; give it as the CA file"
  ],
  [
    "SELF_SIGNED_CERT_IN_CHAIN",
    "the peer's certificate comes from a private CA that is not trusted here; give the CA's certificate as the CA file"
  ],
  [
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "the peer's certificate is not signed by a CA that is trusted here; give the CA's certificate as the CA file"
  ],
  [
    "UNABLE_TO_GET_ISSUER_CERT",
    "the peer's certificate is not signed by a CA that is trusted here; give the CA's certificate as the CA file"
  ],
  [
    "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
    "the peer's certificate is not signed by a CA that is trusted here; give the CA's certificate as the CA file"
  ],
  [
    "CERT_SIGNATURE_FAILURE",
    "the signature of the peer's certificate does not match the CA that is trusted here"
  ],
  ["CERT_REVOKED", "the peer's certificate was revoked"],
  ["CERT_UNTRUSTED", "the peer's certificate is not trusted here"],
  [
    "INVALID_PURPOSE",
    "the peer's certificate may not be used for this side of a connection (extended key usage)"
  ],
  ["INVALID_CA", "the peer's certificate was signed by a certificate that is not a CA"],
  [
    "ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED",
    "the peer wants a client certificate and got none; give a certificate and key file"
  ],
  [
    "ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE",
    "the peer sent no client certificate, and this port requires one"
  ],
  ["ERR_SSL_TLSV1_ALERT_UNKNOWN_CA", "the peer does not trust the CA of this side's certificate"],
  ["ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE", "the peer refused this side's certificate"],
  ["ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED", "the peer says that this side's certificate has expired"],
  ["ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN", "the peer does not accept this side's certificate"],
  [
    "ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE",
    "the peer broke off the TLS handshake; it may want a client certificate, or have no cipher in common"
  ],
  ["ERR_SSL_HTTP_REQUEST", "the peer speaks HTTP on a TLS port"],
  ["ERR_SSL_WRONG_VERSION_NUMBER", "the peer does not speak TLS"],
  ["ERR_SSL_PACKET_LENGTH_TOO_LONG", "the peer does not speak TLS"],
  ["ERR_SSL_UNEXPECTED_MESSAGE", "the peer does not speak TLS as expected"],
  ["ERR_SSL_UNSUPPORTED_PROTOCOL", "the peer speaks only a TLS version that is too old; 1.2 is the least"],
  ["ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION", "the peer refuses the TLS version; 1.2 is the least on this side"],
  ["ERR_SSL_NO_SHARED_CIPHER", "there is no TLS cipher that both sides support"],
  ["ERR_TLS_HANDSHAKE_TIMEOUT", "the TLS handshake took too long"]
])

/** A sentence for an error of TLS (handshake, certificate, name), or undefined when it is of another kind. */
export function describeTlsError(error: unknown): string | undefined {
  const code = errorCode(error)
  if (code === undefined) return undefined
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    const detail = error instanceof Error && "reason" in error ? String(error.reason) : errorText(error)
    return `the peer's certificate is for another name: ${detail}`
  }
  const sentence = describeTlsCode(code)
  if (sentence !== undefined) return sentence
  return code.startsWith("ERR_SSL_") || code.startsWith("ERR_TLS_")
    ? `TLS failed: ${errorText(error)}`
    : undefined
}

/** A sentence for a verification code such as `CERT_HAS_EXPIRED`, or undefined for an unknown one. */
export function describeTlsCode(code: string): string | undefined {
  return TLS_SENTENCES.get(code)
}
