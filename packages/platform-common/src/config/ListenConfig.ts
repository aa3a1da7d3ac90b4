// Where the edge listens: for nodes, for HTTP clients, for whoever watches over it.

import { Schema } from "effect"
import * as Default from "./defaults.ts"
import { FilledText, Host, Port, YesNo } from "./names.ts"
import { optional, required, section, setting } from "./setting.ts"

/** Certificate files, absolute after loading. */
export const TlsConfig = Schema.Struct({
  cert_file: required(FilledText, "The certificate with its chain, PEM."),
  key_file: required(FilledText, "The private key, PEM."),
  client_ca_file: optional(FilledText, "Nodes must show a certificate of this authority, PEM.")
}).annotate({ expected: "a map with cert_file and key_file" })
export type TlsConfig = typeof TlsConfig.Type

const insecure = "Listen beyond this machine although no api_keys are set."

export const NodesListenConfig = Schema.Struct({
  host: setting(Host, Default.NODES_HOST, "The address to listen on."),
  port: setting(Port, Default.NODES_PORT, "The port; 0: any free one."),
  tls: optional(TlsConfig, "Encrypt the links of the nodes.")
}).annotate({ expected: "a map" })

export const HttpListenConfig = Schema.Struct({
  host: setting(Host, Default.HTTP_HOST, "The address to listen on."),
  port: setting(Port, Default.HTTP_PORT, "The port; 0: any free one."),
  insecure: setting(YesNo, Default.LISTEN_INSECURE, insecure),
  hosts: setting(
    Schema.Array(FilledText).annotate({ expected: "a list of host names" }),
    [],
    "Further names by which clients may call this listener, such as edge.home.arpa."
  )
}).annotate({ expected: "a map" })

export const OpsListenConfig = Schema.Struct({
  host: setting(Host, Default.OPS_HOST, "The address to listen on."),
  port: setting(Port, Default.OPS_PORT, "The port; 0: any free one."),
  insecure: setting(YesNo, Default.LISTEN_INSECURE, insecure)
}).annotate({ expected: "a map" })

/** The three listeners. */
export const ListenConfig = Schema.Struct({
  nodes: section(NodesListenConfig, "Nodes dial in here."),
  http: section(HttpListenConfig, "The admin API, which the console and the commands use."),
  ops: section(OpsListenConfig, "/metrics, /healthz and /readyz.")
}).annotate({ expected: "a map" })
export type ListenConfig = typeof ListenConfig.Type
