// Writes the golden frames to proto/testdata: `pnpm --filter @iop/platform-common golden`. Files of frames that are
// no more are removed; the README beside them is left alone.

import { mkdir, rm, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { goldenFiles } from "../src/protocol/testing/goldenFiles.ts"

const folder = fileURLToPath(new URL("../../../proto/testdata/", import.meta.url))

for (const name of ["node", "edge", "framed", "malformed"]) {
  await rm(join(folder, name), { recursive: true, force: true })
}
const files = goldenFiles()
for (const [path, content] of files) {
  const file = join(folder, path)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, content)
}
console.log(`${files.size} files written to ${folder}`)
