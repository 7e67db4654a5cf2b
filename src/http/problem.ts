/** What a receiver answers: small JSON bodies, and problem details (RFC 9457) for everything it refuses. */

/** The kinds of refusal, stable: a client may branch on `code` where two kinds share a status. */
export type ProblemCode =
  | 'method-not-allowed'
  | 'unsupported-media-type'
  | 'body-too-large'
  | 'body-incomplete'
  | 'body-consumed'
  | 'not-authorized'
  | 'idempotency-key-missing'
  | 'idempotency-key-invalid'
  | 'not-json'
  | 'payload-invalid'
  | 'key-empty'
  | 'key-reused'
  | 'in-progress'
  | 'in-review'
  | 'failed'
  | 'compensated'
  | 'unavailable'
  | 'internal'

export interface Problem {
  readonly status: number
  readonly code: ProblemCode
  readonly title: string
  /** Further members of the body. Never values of a payload. */
  readonly members?: Readonly<Record<string, unknown>>
  readonly headers?: Readonly<Record<string, string>>
}

/** Ends a request with a problem. `cause` is what happened, for `onError` only: nothing of it reaches the client. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly problem: Problem

  constructor(problem: Problem, options?: { readonly cause?: unknown }) {
    super(problem.title, options)
    this.problem = problem
  }
}

/** Answers depend on the moment, and nobody should guess a type for them. */
const always = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }

export function jsonResponse(status: number, body: Readonly<Record<string, unknown>>): Response {
  return new Response(JSON.stringify(body), { status, headers: { ...always, 'content-type': 'application/json' } })
}

/** `documentation` is the address of a page on the problems; without one the body says `about:blank`. */
export function problemResponse(problem: Problem, documentation = 'about:blank'): Response {
  const { status, code, title, members, headers } = problem
  return new Response(JSON.stringify({ type: documentation, title, status, code, ...members }), {
    status,
    headers: { ...always, ...headers, 'content-type': 'application/problem+json' },
  })
}

export function tooLarge(maxBytes: number): Problem {
  return { status: 413, code: 'body-too-large', title: 'The body is too large.', members: { maxBytes } }
}
