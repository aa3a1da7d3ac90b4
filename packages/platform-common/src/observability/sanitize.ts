// Text from nodes and callers is data: before it reaches a log line or a terminal it is bounded and its control
// characters are made visible, so that it can't start a line, move a cursor or fake a field.

/** What may end, hide or restyle a line: control characters, line separators, and marks that turn the reading direction. */
const hostile = /[\p{Cc}\p{Cs}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/**
 * The text with control characters written as `\u{…}`, at most `maxChars` UTF-16 units of it, with an ellipsis where
 * it was cut. Well-formed pairs stay whole.
 */
export const boundedText = (text: string, maxChars: number): string =>
  cut(text, maxChars).replace(hostile, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`)

const cut = (text: string, maxChars: number): string => {
  if (text.length <= maxChars) return text
  const last = text.charCodeAt(maxChars - 1)
  const splitsPair = last >= 0xd800 && last <= 0xdbff
  return `${text.slice(0, splitsPair ? maxChars - 1 : maxChars)}…`
}
