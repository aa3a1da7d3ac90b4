// A folder for the files of a test, removed with everything in it.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

export class TempFolder {
  readonly path: string

  constructor(cleanup: AsyncDisposableStack) {
    this.path = mkdtempSync(join(tmpdir(), "iop-e2e-"))
    cleanup.defer(() => rmSync(this.path, { recursive: true, force: true }))
  }

  /** Writes the file and returns its path. */
  write(name: string, content: string | Uint8Array): string {
    const file = join(this.path, name)
    writeFileSync(file, content)
    return file
  }
}
