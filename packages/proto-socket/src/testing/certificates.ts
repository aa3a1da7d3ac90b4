// A private authority and certificates of it, made anew for a test and written to files as a person would have them.

import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import { generate } from "selfsigned"

/** Paths of a certificate and its key. */
export interface CertificateFiles {
  readonly certFile: string
  readonly keyFile: string
}

/** What the tests of TLS need, as paths of PEM files that live as long as the scope. */
export interface TestCertificates {
  readonly directory: string
  /** The authority that signed `server`, `expired` and `client`. */
  readonly caFile: string
  /** For `localhost`, `node.example` and 127.0.0.1. */
  readonly server: CertificateFiles
  /** As `server`, but its time is over. */
  readonly expired: CertificateFiles
  readonly client: CertificateFiles
  /** Signed by nobody but itself. */
  readonly stranger: CertificateFiles
}

interface Certificate {
  readonly cert: string
  readonly private: string
}

const DAY_MS = 24 * 60 * 60 * 1000

const makeCertificate = (
  commonName: string,
  options: { readonly ca?: Certificate; readonly isAuthority?: boolean; readonly expired?: boolean }
): Promise<Certificate> => {
  const now = Date.now()
  return generate([{ name: "commonName", value: commonName }], {
    keyType: "ec",
    algorithm: "sha256",
    notBeforeDate: new Date(now - 10 * DAY_MS),
    notAfterDate: new Date(now + (options.expired ? -1 : 10) * DAY_MS),
    extensions: [
      { name: "basicConstraints", cA: options.isAuthority === true, critical: true },
      {
        name: "subjectAltName",
        altNames: [
          { type: 2, value: "localhost" },
          { type: 2, value: "node.example" },
          { type: 7, ip: "127.0.0.1" }
        ]
      }
    ],
    ...(options.ca ? { ca: { cert: options.ca.cert, key: options.ca.private } } : {})
  })
}

/** Makes them in a directory of their own, which the scope removes. */
export const makeTestCertificates: Effect.Effect<TestCertificates, never, Scope.Scope> = Effect.gen(
  function* () {
    const directory = yield* Effect.acquireRelease(
      Effect.promise(() => mkdtemp(join(tmpdir(), "iop-tls-"))),
      (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
    )
    const save = async (name: string, certificate: Certificate): Promise<CertificateFiles> => {
      const files = { certFile: join(directory, `${name}.crt`), keyFile: join(directory, `${name}.key`) }
      await writeFile(files.certFile, certificate.cert)
      await writeFile(files.keyFile, certificate.private)
      return files
    }
    return yield* Effect.promise(async () => {
      const ca = await makeCertificate("Test authority", { isAuthority: true })
      return {
        directory,
        caFile: (await save("ca", ca)).certFile,
        server: await save("server", await makeCertificate("localhost", { ca })),
        expired: await save("expired", await makeCertificate("localhost", { ca, expired: true })),
        client: await save("client", await makeCertificate("client", { ca })),
        stranger: await save("stranger", await makeCertificate("stranger", {}))
      }
    })
  }
)
