// Configurations for the edges of the tests: loopback, free ports, short clocks, so that no test waits for a default.

export type ConfigSection = Readonly<Record<string, unknown>>

export interface TestConfig {
  readonly edge?: ConfigSection
  readonly listen?: Readonly<Record<string, ConfigSection>>
  readonly api_keys?: ReadonlyArray<ConfigSection>
  readonly nodes?: ReadonlyArray<ConfigSection>
  readonly routes?: ReadonlyArray<ConfigSection>
  readonly link?: ConfigSection
  readonly runs?: ConfigSection
  readonly http?: ConfigSection
  readonly log?: ConfigSection
}

/** The token of the node with this id, in these tests. */
export const tokenOf = (id: string): string => `token-of-${id}-0123456789abcdef`

/** A node with one mock adapter named `mock`. Without targets it offers what it reports. */
export const mockNodeConfig = (
  id: string,
  options: { readonly slots?: number; readonly adapters?: ReadonlyArray<ConfigSection> } & ConfigSection = {}
): ConfigSection => {
  const { slots = 4, adapters, ...rest } = options
  return {
    id,
    alias: `${id}-alias`,
    token: tokenOf(id),
    adapters: adapters ?? [{ name: "mock", type: "mock", slots }],
    ...rest
  }
}

const local = { host: "127.0.0.1", port: 0 }

/** The whole file. JSON is YAML. */
export const configText = (config: TestConfig): string =>
  JSON.stringify(
    {
      ...config,
      edge: { id: "test-edge", drain_timeout: "2s", ...config.edge },
      listen: {
        nodes: { ...local, ...config.listen?.nodes },
        http: { ...local, ...config.listen?.http },
        ops: { ...local, ...config.listen?.ops }
      },
      link: { resume_grace: "1s", ...config.link },
      runs: { cancel_timeout: "300ms", ...config.runs },
      log: { level: "debug", format: "json", ...config.log }
    },
    undefined,
    2
  )
