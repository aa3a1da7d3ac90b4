// HOST:PORT, as it is given on a command line.

/** Where a process listens. */
export interface Address {
  readonly host: string
  readonly port: number
}

/** Reads `HOST:PORT`, an IPv6 host in brackets; undefined if it is none. */
export const parseAddress = (text: string): Address | undefined => {
  const match = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text)
  const port = Number(match?.[3])
  const host = match?.[1] ?? match?.[2]
  return host === undefined || port < 1 || port > 65_535 ? undefined : { host, port }
}
