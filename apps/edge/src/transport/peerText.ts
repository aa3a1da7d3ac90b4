// Text that a peer wrote, for a log, a listing or an error.

const LINE_BREAKERS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

/**
 * The text with control characters, direction marks and lone surrogates escaped as `\u{…}`, at most `limit`
 * characters of it; what was cut shows as `…`.
 */
export const peerText = (text: string, limit: number): string => {
  // Cut first: escaping 1 MiB to show 128 characters of it is work for the one who sent it.
  const escaped = text
    .slice(0, limit + 1)
    .replace(LINE_BREAKERS, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`)
  if (escaped.length <= limit && text.length <= limit) return escaped
  return `${escaped.slice(0, limit - 1)}…`
}
