// What the YAML parser complains about, in our words. The parser's own messages quote the source, which may be a secret.

import type { ErrorCode } from "yaml"

const messages: Record<ErrorCode, string> = {
  ALIAS_PROPS: "an alias (*name) can have neither an anchor nor a tag of its own",
  BAD_ALIAS: "an anchor or alias needs a name that does not end in a colon",
  BAD_DIRECTIVE: "unknown or malformed % directive",
  BAD_DQ_ESCAPE:
    "unknown escape sequence in a double-quoted text; use single quotes, or \\\\ for a backslash",
  BAD_INDENT: "the indentation does not fit to the lines before; keys of one map start in the same column",
  BAD_PROP_ORDER: "an anchor or tag comes after the indicator, not before it",
  BAD_SCALAR_START: "a plain text cannot start with this character; quote it",
  BLOCK_AS_IMPLICIT_KEY:
    "a key and its map or list cannot start on one line like this; is a line break or an indentation missing?",
  BLOCK_IN_FLOW: "lines with - or key: cannot stand inside [ ] or { }",
  DUPLICATE_KEY: "the same key twice in one map",
  IMPOSSIBLE: "this is not YAML",
  KEY_OVER_1024_CHARS: "a key is longer than 1024 characters",
  MISSING_CHAR: "a character is missing here: a closing quote or bracket, a colon, a comma or a space",
  MULTILINE_IMPLICIT_KEY: "a key must be on one line and be followed by a colon",
  MULTIPLE_ANCHORS: "a value has two anchors",
  MULTIPLE_DOCS: "a second document starts here (---); a configuration is one document",
  MULTIPLE_TAGS: "a value has two tags",
  NON_STRING_KEY: "a key must be a text",
  RESOURCE_EXHAUSTION: "nested too deeply",
  TAB_AS_INDENT: "a tab in the indentation; YAML allows spaces only",
  TAG_RESOLVE_FAILED: "a tag (!name) that is not allowed here; remove it",
  UNEXPECTED_TOKEN: "this character is not expected here; if it belongs to a text, quote the text",
  BAD_COLLECTION_TYPE: "a tag (!name) that does not fit to the value; remove it"
}

/** The sentence for an error of the parser. */
export const yamlMessage = (code: ErrorCode): string => messages[code]
