/**
 * Did it happen? An error of a call proves one of three things; without proof it is ambiguous. The classifier walks
 * `cause` and AggregateError, because `fetch` wraps the reason: a TypeError is a network blip, a SyntaxError an HTML
 * error page. Nothing is fatal by its class.
 */
import { NotExecuted } from './control-flow.ts'

/**
 * `not-executed`: the action certainly did not happen. `terminal`: it was decided for good (a declined card); asking
 * again gives the same. `ambiguous`: nobody knows.
 */
export type Verdict = 'not-executed' | 'ambiguous' | 'terminal'

/** System errors raised before anything of the request can have left the machine. */
const beforeTheCall: ReadonlySet<string> = new Set([
  'ENOTFOUND',
  'EAI_AGAIN',
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])
/** System errors after which the request may have arrived. They outweigh a sibling that proves nothing left. */
const duringTheCall: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ECONNABORTED',
  'UND_ERR_SOCKET',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'ERR_STREAM_PREMATURE_CLOSE',
])
const maxVisited = 50

/** The engine's verdict over an error; the provider's own, where it has one, goes first. */
export function classifyError(error: unknown, ofProvider?: (error: unknown) => Verdict | undefined): Verdict {
  const said = askProvider(error, ofProvider)
  if (said !== undefined) return said
  let proven = false
  const seen = new Set<unknown>()
  const waiting: unknown[] = [error]
  while (waiting.length > 0 && seen.size < maxVisited) {
    const each = waiting.pop()
    if (typeof each !== 'object' || each === null || seen.has(each)) continue
    seen.add(each)
    if (each instanceof NotExecuted) return 'not-executed'
    const code = read(each, 'code')
    if (typeof code === 'string') {
      if (duringTheCall.has(code)) return 'ambiguous'
      if (beforeTheCall.has(code)) proven = true
    }
    // ETIMEDOUT of connect() itself says so in `syscall`; it is covered by the connect codes above where it is proven.
    waiting.push(read(each, 'cause'))
    const errors = read(each, 'errors')
    if (Array.isArray(errors)) waiting.push(...(errors as unknown[]))
  }
  return proven ? 'not-executed' : 'ambiguous'
}

function askProvider(
  error: unknown,
  ofProvider: ((error: unknown) => Verdict | undefined) | undefined,
): Verdict | undefined {
  try {
    return ofProvider?.(error)
  } catch {
    // A classifier that throws proves nothing.
    return undefined
  }
}

function read(value: object, name: string): unknown {
  try {
    return (value as Readonly<Record<string, unknown>>)[name]
  } catch {
    return undefined
  }
}

/** The HTTP status an SDK's error carries, under the names in use. */
export function statusOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  for (const name of ['statusCode', 'status', 'httpStatus', 'httpStatusCode']) {
    const status = read(error, name)
    if (typeof status === 'number') return status
  }
  const response = read(error, 'response')
  if (typeof response === 'object' && response !== null) {
    const status = read(response, 'status')
    if (typeof status === 'number') return status
  }
  const metadata = read(error, '$metadata')
  if (typeof metadata === 'object' && metadata !== null) {
    const status = read(metadata, 'httpStatusCode')
    if (typeof status === 'number') return status
  }
  return undefined
}
