/**
 * Did it happen? An error of a call proves one of three things; without proof it is ambiguous. The classifier walks
 * `cause` and AggregateError, because `fetch` wraps the reason: a TypeError is a network blip, a SyntaxError an HTML
 * error page. Nothing is fatal by its class.
 */
import { EffectDeclined, NotExecuted, RetryAfter } from './control-flow.ts'

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

/** The engine's verdict over an error; the provider's own, where it has one, goes before the walk over its causes. */
export function classifyError(error: unknown, ofProvider?: (error: unknown) => Verdict | undefined): Verdict {
  // What the effect's own code says by type is meant.
  if (error instanceof EffectDeclined) return 'terminal'
  if (error instanceof NotExecuted || error instanceof RetryAfter) return 'not-executed'
  return askProvider(error, ofProvider) ?? (readProof(error, new Set()) === 'before' ? 'not-executed' : 'ambiguous')
}

/** `before`: nothing can have left the machine. `during`: something may have. Undefined: it says neither. */
type Proof = 'before' | 'during' | undefined

/** One cause that proves is enough; of errors that stand side by side each must. `during` outweighs everything. */
function readProof(error: unknown, seen: Set<unknown>): Proof {
  if (typeof error !== 'object' || error === null || seen.has(error)) return undefined
  if (seen.size >= maxVisited) return 'during'
  seen.add(error)
  if (error instanceof NotExecuted || error instanceof RetryAfter) return 'before'
  const proofs = [codeProof(error), readProof(read(error, 'cause'), seen)]
  const errors = read(error, 'errors')
  if (Array.isArray(errors) && errors.length > 0) {
    const siblings = (errors as unknown[]).slice(0, maxVisited).map((each) => readProof(each, seen))
    proofs.push(errors.length <= maxVisited && siblings.every((proof) => proof === 'before') ? 'before' : 'during')
  }
  if (proofs.includes('during')) return 'during'
  return proofs.includes('before') ? 'before' : undefined
}

/** On an open connection the same codes mean that the peer went away in mid-call. */
const onOpenConnection: ReadonlySet<unknown> = new Set(['read', 'write', 'writev', 'shutdown'])

function codeProof(error: object): Proof {
  const code = read(error, 'code')
  if (typeof code !== 'string') return undefined
  const syscall = read(error, 'syscall')
  if (onOpenConnection.has(syscall)) return 'during'
  if (code === 'ETIMEDOUT' && syscall === 'connect') return 'before'
  if (duringTheCall.has(code)) return 'during'
  return beforeTheCall.has(code) ? 'before' : undefined
}

function askProvider(
  error: unknown,
  ofProvider: ((error: unknown) => Verdict | undefined) | undefined,
): Verdict | undefined {
  try {
    const said: unknown = ofProvider?.(error)
    return said === 'not-executed' || said === 'ambiguous' || said === 'terminal' ? said : undefined
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
