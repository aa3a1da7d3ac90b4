// The bundled fake node as a real process.
import { fileURLToPath } from "node:url"
import { ChildProcess } from "./ChildProcess.ts"
import type { Address } from "./RawHttp.ts"

const MAIN = fileURLToPath(new URL("../../../mock-node/src/main.ts", import.meta.url))

export interface MockNodeOptions {
  readonly edge: Address
  readonly token: string
  readonly name?: string
  readonly env?: Readonly<Record<string, string>>
  /** Further arguments, such as those of TLS. */
  readonly args?: ReadonlyArray<string>
}

export class MockNode extends ChildProcess {
  constructor(cleanup: AsyncDisposableStack, options: MockNodeOptions) {
    super(cleanup, {
      name: options.name ?? "mock-node",
      args: [MAIN, "--edge", `${options.edge.host}:${options.edge.port}`, ...(options.args ?? [])],
      env: { ...options.env, IOP_NODE_TOKEN: options.token }
    })
  }
}
