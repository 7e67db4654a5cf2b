/** The frame around every receiver: it answers whatever happens inside, and tells clients nothing of its insides. */
import { hasCode, isTransient } from '../core/errors.ts'
import { type Problem, problemResponse, Refusal, tooLarge } from './problem.ts'

/** A web-standard request handler: a route of Next.js, Hono, Bun or Deno as it is, and of Node through toNodeListener. */
export type RequestHandler = (request: Request) => Promise<Response>

/** Hears what a client is not told, with the status and the problem code of the answer. What it throws is dropped. */
export type ErrorListener = (error: unknown, answer: { readonly status: number; readonly code: string }) => void

interface Frame {
  readonly onError: ErrorListener | undefined
  readonly documentation?: string | undefined
}

const retryAfterSeconds = '5'
const maxIssuePathLength = 200

export function receiver(frame: Frame, answer: RequestHandler): RequestHandler {
  return async (request) => {
    try {
      if (request.method !== 'POST') throw methodNotAllowed()
      return await answer(request)
    } catch (thrown) {
      const problem = thrown instanceof Refusal ? thrown.problem : problemOf(thrown)
      const error = thrown instanceof Refusal ? thrown.cause : thrown
      if (error !== undefined) report(frame.onError, error, problem)
      return problemResponse(problem, frame.documentation)
    }
  }
}

function methodNotAllowed(): Refusal {
  return new Refusal({
    status: 405,
    code: 'method-not-allowed',
    title: 'Only POST is answered here.',
    headers: { allow: 'POST' },
  })
}

export function report(
  onError: ErrorListener | undefined,
  error: unknown,
  { status, code }: Pick<Problem, 'status' | 'code'>,
): void {
  try {
    onError?.(error, { status, code })
  } catch {
    // The answer to the client must not depend on a log.
  }
}

/** The problem an error of enqueue stands for. The names of what is wrong go out, values never. */
function problemOf(error: unknown): Problem {
  if (hasCode(error, 'CHOKAQ_PAYLOAD_INVALID')) return payloadInvalid(error.details.issues.map(issuePath))
  if (hasCode(error, 'CHOKAQ_NOT_JSON')) return payloadInvalid([error.details.path.slice(0, maxIssuePathLength)])
  if (hasCode(error, 'CHOKAQ_TOO_LARGE')) return tooLarge(error.details.maxBytes)
  if (hasCode(error, 'CHOKAQ_EMPTY_KEY')) {
    return {
      status: 400,
      code: 'key-empty',
      title: 'The request does not say which operation it is: its key is empty.',
    }
  }
  // A closed storage is a deploy going on: the next process takes the repeat.
  const passes =
    isTransient(error) || hasCode(error, 'CHOKAQ_ENQUEUE_UNKNOWN') || hasCode(error, 'CHOKAQ_STORAGE_CLOSED')
  if (passes) {
    const headers = { 'retry-after': retryAfterSeconds }
    return {
      status: 503,
      code: 'unavailable',
      title: 'Nothing is confirmed as stored. Send the same request again.',
      headers,
    }
  }
  return { status: 500, code: 'internal', title: 'The request could not be taken.' }
}

function payloadInvalid(issues: readonly string[]): Problem {
  return { status: 400, code: 'payload-invalid', title: 'The payload is not valid.', members: { issues } }
}

/** '$.amount: Expected number, received "12"' → '$.amount'. Some schema libraries quote the value in the message. */
function issuePath(issue: string): string {
  const path = issue.startsWith('$') ? (issue.split(': ', 1)[0] ?? '$') : '$'
  return path.slice(0, maxIssuePathLength)
}
