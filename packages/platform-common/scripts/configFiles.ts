// Writes what is made from the configuration's schema: the JSON Schema for editors and the reference page.

import { writeFileSync } from "node:fs"
import { configDocument } from "../src/config/configDocument.ts"
import { configJsonSchema } from "../src/config/configJsonSchema.ts"

const root = new URL("../../../", import.meta.url)
writeFileSync(
  new URL("apps/edge/config.schema.json", root),
  `${JSON.stringify(configJsonSchema(), null, 2)}\n`
)
writeFileSync(new URL("docs/configuration.md", root), configDocument())
