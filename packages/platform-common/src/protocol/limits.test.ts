import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import type { DescFile } from "@bufbuild/protobuf"
import { assert, describe, it } from "@effect/vitest"
import { file_iop_v1_frame } from "../gen/iop/v1/frame_pb.ts"
import * as limits from "./limits.ts"

const specification = readFileSync(
  fileURLToPath(new URL("../../../../proto/README.md", import.meta.url)),
  "utf8"
)

describe("limits", () => {
  const numbers = Object.entries(limits).flatMap(([name, value]) =>
    typeof value === "number" ? [[name, value] as const] : []
  )

  it.each(numbers)("%s is in the specification", (_name, value) => {
    assert.match(specification, new RegExp(`(?<![\\d,])${value.toLocaleString("en-US")}(?![\\d,]*\\d)`))
  })

  it("name repeated fields that exist", () => {
    const known = filesOf(file_iop_v1_frame)
      .flatMap(({ messages }) => messages)
      .flatMap(({ fields }) => fields)
      .filter(({ fieldKind }) => fieldKind === "list" || fieldKind === "map")
      .map((field) => `${field.parent.typeName}.${field.name}`)
    assert.deepStrictEqual(
      Object.keys(limits.MAX_ELEMENTS).filter((name) => !known.includes(name)),
      []
    )
  })
})

/** The file and all that it imports, some of them twice. */
const filesOf = (file: DescFile): ReadonlyArray<DescFile> => [file, ...file.dependencies.flatMap(filesOf)]
