// Text from nodes and callers is data: before it reaches a log line or a terminal it is bounded and its control
// characters are made visible, so that it can't start a line, move a cursor or fake a field.

/** What may end, hide or restyle a line: C0, DEL, C1, line separators, and marks that turn the reading direction. */
const hostile = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]/gu

/**
 * The text with control characters written as `\u{…}`, at most `maxChars` UTF-16 units of it, with an ellipsis where
 * it was cut. Well-formed pairs stay whole.
 */
export const boundedText = (text: string, maxChars: number): string => {
  const cut = text.length > maxChars ? `${text.slice(0, maxChars)}…` : text
  return cut.replace(hostile, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`)
}
