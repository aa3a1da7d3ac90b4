// Where a text stops being JSON. JSON.parse only says so for some errors, and prints the text around it for others; this
// runs once a text has been refused, and never on one that is deeper than the limit.

const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const escape = /\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})/y
const literal = /true|false|null/y
const space = /[ \t\n\r]*/y

/** The index of the first character that can't stand where it stands; the text's length when it ends too early. */
export const jsonErrorOffset = (text: string): number => {
  let at = 0
  const skip = (pattern: RegExp): boolean => {
    pattern.lastIndex = at
    if (!pattern.test(text)) return false
    at = pattern.lastIndex
    return true
  }
  const take = (character: string): boolean => {
    skip(space)
    if (text[at] !== character) return false
    at += 1
    return true
  }
  // A loop, because a pattern needs stack for each character. A string that breaks is wrong where it breaks.
  const quoted = (): boolean => {
    skip(space)
    if (text[at] !== `"`) return false
    at += 1
    while (at < text.length) {
      const code = text.charCodeAt(at)
      if (code === 0x5c) {
        if (!skip(escape)) return false
      } else if (code < 0x20) return false
      else {
        at += 1
        if (code === 0x22) return true
      }
    }
    return false
  }
  const items = (end: string, item: () => boolean): boolean => {
    if (take(end)) return true
    do {
      if (!item()) return false
    } while (take(","))
    return take(end)
  }
  const member = (): boolean => quoted() && take(":") && value()
  const value = (): boolean => {
    skip(space)
    switch (text[at]) {
      case "{":
        at += 1
        return items("}", member)
      case "[":
        at += 1
        return items("]", value)
      case `"`:
        return quoted()
      default:
        return skip(number) || skip(literal) || brokenLiteral()
    }
  }
  const brokenLiteral = (): boolean => {
    for (const word of ["true", "false", "null"]) {
      if (text[at] !== word[0]) continue
      let same = 0
      while (same < word.length && text[at + same] === word[same]) same += 1
      at += same
    }
    return false
  }
  if (value()) skip(space)
  return at
}
