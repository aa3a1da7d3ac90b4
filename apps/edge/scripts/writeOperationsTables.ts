// Brings the tables of docs/operations.md up to date with the code.
import { readFileSync, writeFileSync } from "node:fs"
import { resolve } from "node:path"
import { withTables } from "../test/operationsTables.ts"

const page = resolve(import.meta.dirname, "../../../docs/operations.md")
writeFileSync(page, withTables(readFileSync(page, "utf8")))
