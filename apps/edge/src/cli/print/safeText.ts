// Text of nodes and callers as it may reach a terminal: no escape sequence, no control character, no bidirectional
// override gets through, so that an answer can't move the cursor, set a title or hide what it says.

/** C0 and C1 controls except tab and line feed, DEL, and the characters that turn the direction of text around. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is what this is for
const dangerous = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: as above
const hasDangerous = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/

const shown = (character: string): string => {
  const code = character.charCodeAt(0)
  // Line ends of other systems are line ends; everything else becomes visible.
  if (code === 0x0d) return ""
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  return code === 0x7f ? "\u2421" : "\ufffd"
}

/** The text with its line breaks and tabs; everything else that a terminal would obey is made visible instead. */
export const safeText = (text: string): string =>
  hasDangerous.test(text) ? text.replace(dangerous, shown) : text

/** The text on one line. */
export const safeLine = (text: string): string => safeText(text).replace(/[\n\t]+/g, " ")
