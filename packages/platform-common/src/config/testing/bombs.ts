// Texts that are made to overwhelm a YAML parser, each small enough to be read.

const lines = (count: number, line: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => line(index)).join("\n")

/** By name: the text, and the words that the refusal must have. */
export const bombs: Readonly<Record<string, { readonly text: () => string; readonly says: string }>> = {
  aliases: {
    text: () =>
      `a0: &a0 [${"x,".repeat(9)}]\n${lines(9, (i) => `a${i + 1}: &a${i + 1} [${`*a${i},`.repeat(9)}]`)}`,
    says: "aliases make this too large"
  },
  "an alias in its own anchor": {
    text: () => "listen: { nodes: { host: localhost } }\nnodes: &a [*a]",
    says: "needs an anchor (&name) further up, outside of itself"
  },
  "20,000 levels of lists": { text: () => "[".repeat(20_000), says: "nested too deeply" },
  "20,000 levels of maps": { text: () => `a: ${"{a: ".repeat(20_000)}`, says: "nested too deeply" },
  "20,000 dashes": { text: () => "- ".repeat(20_000), says: "nested too deeply" },
  "700 indented keys": { text: () => lines(700, (i) => `${" ".repeat(i)}a:`), says: "nested too deeply" },
  "20,000 question marks": { text: () => "? ".repeat(20_000), says: "nested too deeply" },
  "50 MiB": { text: () => "a".repeat(50 * 1024 * 1024), says: "larger than 1 MiB" },
  "400,000 values": { text: () => `[${"1,".repeat(400_000)}]`, says: "too many values" },
  "90,000 keys": { text: () => lines(90_000, (i) => `k${i}:`), says: "too many values" },
  "a million line breaks": { text: () => "\n".repeat(1_000_000), says: "too many values" },
  "60,000 directives": { text: () => "%a\n".repeat(60_000), says: "directive" },
  "60,000 documents": { text: () => "---\n".repeat(60_000), says: "second document" },
  "an open quote over 1 MiB": { text: () => `a: "${"x\n".repeat(500_000)}`, says: "a character is missing" }
}
