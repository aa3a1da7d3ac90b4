// The scripts that a target of the mock adapter can play, by name.

import { count } from "./scripts/count.ts"
import { echo } from "./scripts/echo.ts"
import { embed } from "./scripts/embed.ts"
import { failFirst, failMid } from "./scripts/failures.ts"
import { flood } from "./scripts/flood.ts"
import { lorem } from "./scripts/lorem.ts"
import { never } from "./scripts/never.ts"
import type { Script } from "./scripts/Script.ts"
import { slowStart } from "./scripts/slowStart.ts"
import { think } from "./scripts/think.ts"
import { tools } from "./scripts/tools.ts"
import { unicode } from "./scripts/unicode.ts"

/** In the order in which they are offered. */
export const mockScripts: ReadonlyMap<string, Script> = new Map(
  [echo, lorem, think, tools, count, unicode, embed, slowStart, failFirst, failMid, never, flood].map(
    (script): [string, Script] => [script.name, script]
  )
)
