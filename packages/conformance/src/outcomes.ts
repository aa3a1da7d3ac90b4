// How a check ends when it does not end well: the other side broke the rule, or there is no way to tell from here.

/** The peer did not do what the rule says. */
export class RuleBroken extends Error {
  readonly expected: string
  readonly came: string

  constructor(expected: string, came: string) {
    super(`expected ${expected}; came ${came}`)
    this.expected = expected
    this.came = came
  }
}

/** The check needs something that the kit was not given; the message says what. */
export class NotTestable extends Error {}

/** Fails the check unless the condition holds. `came` is only called when it does not. */
export function expect(holds: boolean, expected: string, came: () => string): asserts holds {
  if (!holds) throw new RuleBroken(expected, came())
}

/** Fails the check unless both are the same. */
export const expectSame = <A extends string | number | boolean>(what: string, wanted: A, found: A): void =>
  expect(wanted === found, `${what} ${JSON.stringify(wanted)}`, () => JSON.stringify(found))
