// Configurations in the documentation are good ones: whoever copies one gets no error.
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { parseConfig } from "@iop/platform-common/config/parseConfig"
import { Result } from "effect"
import { workspace } from "./sourceFiles.ts"

const examples = ["README.md", "docs/*.md", "packages/*/README.md", "examples/*/README.md"]
  .flatMap((pattern) => globSync(pattern, { cwd: workspace }))
  .flatMap((path) => {
    const text = readFileSync(join(workspace, path), "utf8")
    return [...text.matchAll(/```yaml\n([\s\S]*?)```|<<'END'\n([\s\S]*?)^END$/gm)].map((match, index) => ({
      name: `${path}, example ${index + 1}`,
      yaml: match[1] ?? match[2] ?? ""
    }))
  })

/** A value for each variable and file that an example takes its secrets from. */
const secretFor = (name: string) => `a-secret-of-${name}`.replaceAll(/[^a-z-]/gi, "-")

describe("the configuration of", () => {
  it("every page is found", () => {
    assert.isAtLeast(examples.length, 3)
  })
  for (const { name, yaml } of examples) {
    it(`${name} is good`, () => {
      const variables = [...yaml.matchAll(/\$\{(\w+)\}/g)].map(([, variable = ""]) => variable)
      const result = parseConfig(yaml, {
        file: "edge.yaml",
        env: Object.fromEntries(variables.map((variable) => [variable, secretFor(variable)])),
        readFile: (path) => ({ text: secretFor(path) })
      })
      assert.isTrue(Result.isSuccess(result), Result.isFailure(result) ? String(result.failure) : "")
    })
  }
})
