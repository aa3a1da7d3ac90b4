// Which listeners only this machine can reach.

/** Whether an address or name can be reached from this machine alone. */
export const isLoopback = (host: string): boolean => {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, "$1")
  if (name === "localhost" || name.endsWith(".localhost") || name === "::1" || name === "0:0:0:0:0:0:0:1")
    return true
  return /^(::ffff:)?127(\.\d{1,3}){3}$/.test(name)
}
