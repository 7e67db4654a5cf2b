/** What the Deck refuses, as problem details (RFC 9457). Texts are for the person at the screen and name no insides. */
import { hasCode, isTransient } from '../core/errors.ts'
import type { ProblemView } from './wire.ts'

/** Stable: the page may branch on them where two kinds share a status. */
export type DeckProblemCode =
  | 'not-found'
  | 'method-not-allowed'
  | 'deny-by-default'
  | 'host-not-allowed'
  | 'cross-site'
  | 'login-required'
  | 'login-failed'
  | 'role-too-low'
  | 'unsupported-media-type'
  | 'body-too-large'
  | 'body-not-json'
  | 'request-invalid'
  | 'cursor-invalid'
  | 'too-many-requests'
  | 'too-many-streams'
  | 'job-not-found'
  | 'not-possible'
  | 'changed'
  | 'confirmation-needed'
  | 'payload-invalid'
  | 'contract-needed'
  | 'storage-unavailable'
  | 'too-slow'
  | 'internal'

export class DeckRefusal extends Error {
  override readonly name = 'DeckRefusal'
  readonly status: number
  readonly code: DeckProblemCode
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, code: DeckProblemCode, title: string, headers: Readonly<Record<string, string>> = {}) {
    super(title)
    this.status = status
    this.code = code
    this.headers = headers
  }
}

/** Never says more than the kind: a message of a driver may hold hosts, paths or values. */
export function refusalOf(error: unknown): DeckRefusal {
  if (error instanceof DeckRefusal) return error
  if (hasCode(error, 'CHOKAQ_CURSOR_INVALID')) {
    return new DeckRefusal(400, 'cursor-invalid', 'This is no position in this list. Start again from its beginning.')
  }
  if (hasCode(error, 'CHOKAQ_JOB_NOT_FOUND')) return jobNotFound()
  if (hasCode(error, 'CHOKAQ_NOT_POSSIBLE')) {
    const { act, state } = error.details
    return new DeckRefusal(409, 'not-possible', `${capital(act)} is not possible: the job is ${state}.`)
  }
  if (hasCode(error, 'CHOKAQ_OPTION_INVALID')) {
    const { option, expected } = error.details
    return new DeckRefusal(400, 'request-invalid', `${option} is not valid; expected ${expected}.`)
  }
  if (hasCode(error, 'CHOKAQ_TOO_LARGE')) {
    return new DeckRefusal(
      413,
      'body-too-large',
      `It is too large: at most ${error.details.maxBytes} bytes are stored.`,
    )
  }
  if (hasCode(error, 'CHOKAQ_STORAGE_FAILED') && / gave no answer for /.test(error.details.problem)) {
    return new DeckRefusal(
      503,
      'too-slow',
      'The database took too long to answer. Narrow what you ask for, or try again.',
    )
  }
  const isAway =
    isTransient(error) || hasCode(error, 'CHOKAQ_STORAGE_CLOSED') || hasCode(error, 'CHOKAQ_SCHEMA_MISSING')
  if (isAway) {
    return new DeckRefusal(
      503,
      'storage-unavailable',
      'The database does not answer. Nothing was changed; try again.',
      {
        'retry-after': '5',
      },
    )
  }
  return new DeckRefusal(500, 'internal', 'The Deck could not answer this. Its log says why.')
}

export function jobNotFound(): DeckRefusal {
  return new DeckRefusal(404, 'job-not-found', 'No job has this id: it never existed, or its history was pruned.')
}

export function invalid(title: string): DeckRefusal {
  return new DeckRefusal(400, 'request-invalid', title)
}

export function problemBody({ status, code, message }: DeckRefusal): ProblemView {
  return { status, code, title: message }
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
