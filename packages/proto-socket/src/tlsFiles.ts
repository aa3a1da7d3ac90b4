// Reads certificate and key files and finds what is wrong with them while the person who named them is still looking:
// a file that cannot be read, that holds something else, or a key that does not belong to the certificate.

import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto"
import { readFile } from "node:fs/promises"
import { Data, Effect } from "effect"
import { errorCode, errorText } from "./socketErrors.ts"

/** A file of TLS that cannot be used; the message names it. */
export class TlsFileError extends Data.TaggedError("TlsFileError")<{
  readonly path: string
  readonly message: string
  readonly cause?: unknown
}> {}

/** PEM text of a certificate (with its chain) and its private key. */
export interface TlsIdentity {
  readonly cert: Buffer
  readonly key: Buffer
}

/** Reads a certificate and the private key that belongs to it. */
export const readIdentity = Effect.fnUntraced(function* (
  certFile: string,
  keyFile: string
): Effect.fn.Return<TlsIdentity, TlsFileError> {
  const cert = yield* readTlsFile(certFile, "certificate")
  const certificate = yield* parseCertificate(cert, certFile)
  const key = yield* readTlsFile(keyFile, "key")
  const privateKey = yield* parseKey(key, keyFile)
  if (!certificate.checkPrivateKey(privateKey)) {
    return yield* new TlsFileError({
      path: keyFile,
      message: `the key file ${keyFile} does not belong to the certificate in ${certFile}`
    })
  }
  return { cert, key }
})

/** Reads one or more certificates of authorities. */
export const readAuthority = Effect.fnUntraced(function* (
  caFile: string
): Effect.fn.Return<Buffer, TlsFileError> {
  const ca = yield* readTlsFile(caFile, "CA")
  yield* parseCertificate(ca, caFile)
  return ca
})

const FILE_SENTENCES: ReadonlyMap<string, string> = new Map([
  ["ENOENT", "does not exist"],
  ["EACCES", "may not be read by this user"],
  ["EISDIR", "is a directory"]
])

const readTlsFile = (path: string, what: string) =>
  Effect.tryPromise({
    try: () => readFile(path),
    catch: (cause) =>
      new TlsFileError({
        path,
        message: `the ${what} file ${path} ${FILE_SENTENCES.get(errorCode(cause) ?? "") ?? `cannot be read: ${errorText(cause)}`}`,
        cause
      })
  })

const parseCertificate = (pem: Buffer, path: string): Effect.Effect<X509Certificate, TlsFileError> =>
  Effect.try({
    try: () => new X509Certificate(pem),
    catch: (cause) => new TlsFileError({ path, message: `${path} holds no certificate in PEM form`, cause })
  })

const parseKey = (pem: Buffer, path: string): Effect.Effect<KeyObject, TlsFileError> =>
  Effect.try({
    try: () => createPrivateKey(pem),
    catch: (cause) =>
      new TlsFileError({
        path,
        message:
          errorCode(cause) === "ERR_MISSING_PASSPHRASE"
            ? `the key in ${path} is protected by a passphrase; give one that is not`
            : `${path} holds no private key in PEM form`,
        cause
      })
  })
