// One guard: a text that keeps a promise, and the tests that notice when it is gone.

export interface Guard {
  /** The hole (H), invariant (I) or rule (R) it stands for. */
  readonly stands: string
  readonly what: string
  readonly file: string
  /** Occurs exactly once in the file. */
  readonly text: string
  readonly instead: string
  /** File, and titles of tests in it (or beginnings of titles): each must fail. */
  readonly tests: Readonly<Record<string, readonly string[]>>
}

export function guard(
  stands: string,
  what: string,
  file: string,
  text: string,
  instead: string,
  tests: Guard['tests'],
): Guard {
  return { stands, what, file, text, instead, tests }
}
