// `HOST:PORT` as people write it, IPv6 in brackets.

/** Host and port, or a sentence that says what is wrong. */
export const parseEdgeAddress = (
  text: string
): { readonly host: string; readonly port: number } | { readonly problem: string } => {
  const match = /^(?:\[([^\]]+)\]|([^:\s]+)):(\d{1,5})$/u.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3])
  if (host === undefined || port < 1 || port > 65_535) {
    return { problem: `${text} is not an address; write HOST:PORT, such as 192.168.1.2:7610 or [::1]:7610` }
  }
  return { host, port }
}
