// The flags with which a node dials an edge over TLS. Naming any of the files or the name is asking for TLS too, so that
// nobody who forgot `--tls` sends a token in the clear.

import type { TlsClientOptions } from "@iop/proto-socket/dialFrames"
import { Option } from "effect"
import { Flag } from "effect/cli"

/** See the file's head. */
export const tlsFlags = {
  tls: Flag.Boolean("tls").pipe(
    Flag.withDescription("dial over TLS; the flags below ask for it too"),
    Flag.withDefault(false)
  ),
  caFile: Flag.File("ca-file").pipe(
    Flag.withDescription(
      "authority that the edge's certificate comes from, PEM; default: those that Node trusts"
    ),
    Flag.optional
  ),
  certFile: Flag.File("cert-file").pipe(
    Flag.withDescription("this node's certificate, for an edge that wants one, PEM"),
    Flag.optional
  ),
  keyFile: Flag.File("key-file").pipe(Flag.withDescription("the key of --cert-file, PEM"), Flag.optional),
  serverName: Flag.String("server-name").pipe(
    Flag.withMetavar("NAME"),
    Flag.withDescription("name that the edge's certificate must have; default: the host of --edge"),
    Flag.optional
  )
}

/** The flags' values. */
export interface TlsFlagValues {
  readonly tls: boolean
  readonly caFile: Option.Option<string>
  readonly certFile: Option.Option<string>
  readonly keyFile: Option.Option<string>
  readonly serverName: Option.Option<string>
}

/** What `runNode` needs of them: nothing for plain TCP. */
export const tlsOfFlags = ({ tls, ...flags }: TlsFlagValues): { readonly tls?: TlsClientOptions } => {
  const given = Object.entries(flags).flatMap(([name, value]) =>
    Option.isSome(value) ? [[name, value.value] as const] : []
  )
  return tls || given.length > 0 ? { tls: Object.fromEntries(given) } : {}
}
