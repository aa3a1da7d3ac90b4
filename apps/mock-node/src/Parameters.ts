// The parameters of a script: the run's own before those of the target's configuration before the script's
// defaults. A value of the wrong type fails the run and names the parameter.

import { AdapterFailure } from "@iop/node-sdk/Adapter"

/** JSON objects, the strongest first. */
export type ParameterSource = { readonly [name: string]: unknown }

/** See the file's head. */
export class Parameters {
  readonly #sources: ReadonlyArray<ParameterSource>

  constructor(...sources: ReadonlyArray<ParameterSource>) {
    this.#sources = sources
  }

  /** A whole number from 0 up to `max`. Throws an `AdapterFailure`. */
  count(name: string, fallback: number, max = 1_000_000_000): number {
    const value = this.#find(name)
    if (value === undefined) return fallback
    if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= max) return value
    throw wrong(name, `a whole number from 0 to ${max}`)
  }

  /** True or false. Throws an `AdapterFailure`. */
  flag(name: string, fallback: boolean): boolean {
    const value = this.#find(name)
    if (value === undefined) return fallback
    if (typeof value === "boolean") return value
    throw wrong(name, "true or false")
  }

  /** A text. Throws an `AdapterFailure`. */
  text(name: string): string | undefined {
    const value = this.#find(name)
    if (value === undefined || typeof value === "string") return value
    throw wrong(name, "a text")
  }

  /** Any JSON value. */
  value(name: string): unknown {
    return this.#find(name)
  }

  #find(name: string): unknown {
    for (const source of this.#sources) {
      if (Object.hasOwn(source, name) && source[name] !== null) return source[name]
    }
    return undefined
  }
}

const wrong = (name: string, expected: string) =>
  new AdapterFailure({
    code: "invalid_input",
    message: `parameter ${name} of the mock adapter must be ${expected}`,
    retryable: false
  })
