// The scripts that a target of the mock adapter can play, by name.

import { echo } from "./scripts/echo.ts"
import type { Script } from "./scripts/Script.ts"

/** In the order in which they are offered. */
export const mockScripts: ReadonlyMap<string, Script> = new Map(
  [echo].map((script): [string, Script] => [script.name, script])
)
