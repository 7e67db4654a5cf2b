/**
 * The registry of error codes. Every error ChokaQ throws or records is made here, so that each code has one text that
 * says what happened, with which value, and what to do. docs/errors.md lists the same codes; a test compares both.
 * A retired code is never reused.
 */

type Registry = Record<string, (details: never) => string>

const registry = {
  // ---- declaring jobs and handlers
  CHOKAQ_CONTRACT_INVALID: (d: { type: string; problem: string }) =>
    `The contract "${d.type}" is not valid: ${d.problem}`,
  CHOKAQ_HANDLER_INVALID: (d: { type: string; problem: string }) =>
    `The handler of "${d.type}" is not valid: ${d.problem}`,
  CHOKAQ_EFFECT_INVALID: (d: { name: string; problem: string }) => `The effect "${d.name}" is not valid: ${d.problem}`,
  CHOKAQ_PROVIDER_INVALID: (d: { name: string; problem: string }) =>
    `The provider "${d.name}" is not valid: ${d.problem}`,
  CHOKAQ_CONFIG_INVALID: (d: { problem: string }) => `The configuration is not valid: ${d.problem}`,
  CHOKAQ_DURATION_INVALID: (d: { name: string; value: string }) =>
    `${d.name} is ${d.value}, which is no duration. Give milliseconds as a number or a text such as '500ms', '30s', '5m', '2h', '7d'.`,
  CHOKAQ_BOOT_REFUSED: (d: { problems: readonly string[] }) =>
    `The worker refuses to start, because its settings threaten safety:\n- ${d.problems.join('\n- ')}\nChange the settings, or waive a rule with a written reason: waive: { rule: 'reason' }.`,

  // ---- enqueue
  CHOKAQ_PAYLOAD_INVALID: (d: { type: string; issues: readonly string[] }) =>
    `The payload of "${d.type}" fails its schema:\n- ${d.issues.join('\n- ')}`,
  CHOKAQ_NOT_JSON: (d: { what: string; path: string; problem: string }) =>
    `${d.what} cannot be stored as JSON: ${d.problem} at ${d.path}. Store texts, finite numbers, booleans, null, arrays and plain objects.`,
  CHOKAQ_TOO_LARGE: (d: { what: string; bytes: number; maxBytes: number }) =>
    `${d.what} has ${d.bytes} bytes; the limit is ${d.maxBytes}. Store the data elsewhere and pass its id.`,
  CHOKAQ_EMPTY_KEY: (d: { type: string; value: string }) =>
    `The key of "${d.type}" is ${d.value}, which identifies nothing: an unprotected side effect would follow. Return a stable, non-empty business id.`,
  CHOKAQ_KEY_THROWN: (d: { type: string; problem: string }) =>
    `The ${d.problem} function of "${d.type}" threw. It must be a pure function of the payload.`,
  CHOKAQ_KEY_REUSED: (d: { type: string; holderId: string; paths: readonly string[] }) =>
    `The key of this "${d.type}" job is held by job ${d.holderId} with another payload${
      d.paths.length > 0
        ? `; they differ at ${d.paths.join(', ')}`
        : ' (the paths are unknown: its payload is no longer kept)'
    }. Use another key for another operation.`,
  CHOKAQ_ID_REUSED: (d: { id: string }) =>
    `A job with id ${d.id} exists already with another type, key or payload. Use a fresh id, or resend exactly the same job.`,
  CHOKAQ_CHILD_REUSED: (d: { type: string; holderId: string }) =>
    `A "${d.type}" child has the name of child ${d.holderId} of the same parent, which is stored with another payload. Give each child its own item, and derive its payload from the payload of the parent and from memos only.`,
  CHOKAQ_ENQUEUE_UNKNOWN: (d: { id: string; waitedMs: number }) =>
    `No answer from the storage for ${d.waitedMs} ms: job ${d.id} may or may not be stored. Repeat the call with { id: '${d.id}' }: it is safe for as long as resendFor says, an hour by default.`,
  CHOKAQ_OPTION_INVALID: (d: { option: string; value: string; expected: string }) =>
    `${d.option} is ${d.value}; expected ${d.expected}.`,
  CHOKAQ_UNKNOWN_TYPE: (d: { type: string; known: readonly string[] }) =>
    `No contract is known for type "${d.type}". Known: ${d.known.length > 0 ? d.known.join(', ') : 'none'}. Start a worker that registers it, or pass --jobs with the file that defines it.`,
  CHOKAQ_RAW_REFUSED: (d: { type: string }) =>
    `The type "${d.type}" is keyed and its contract does not say allowRaw, so it cannot be enqueued without the contract. Pass the contract, or set allowRaw: true.`,
  CHOKAQ_NOT_IN_TRANSACTION: (d: { call: string }) =>
    `${d.call} got a database handle that is in no transaction, so the job would not share the fate of your rows. Call it inside the transaction.`,
  CHOKAQ_TX_UNSUPPORTED: (d: { call: string; problem: string }) =>
    `${d.call} cannot use this transaction: ${d.problem}`,

  // ---- running
  CHOKAQ_LEASE_LOST: (d: { jobId: string }) =>
    `The lease of job ${d.jobId} is lost: another worker may run it now. Nothing this attempt writes is recorded; stop its work.`,
  CHOKAQ_JOB_TIMEOUT: (d: { jobId: string; timeoutMs: number }) =>
    `Job ${d.jobId} ran longer than its timeout of ${d.timeoutMs} ms and its signal was aborted.`,
  CHOKAQ_JOB_CANCELLED: (d: { jobId: string }) => `Job ${d.jobId} was cancelled and its signal was aborted.`,
  CHOKAQ_SHUTDOWN: (d: { jobId: string }) =>
    `The worker shuts down; job ${d.jobId} had not finished within the grace and its signal was aborted.`,
  CHOKAQ_INTERRUPTED: (d: { jobId: string; crashCount: number }) =>
    `Job ${d.jobId} was interrupted: its worker died while it ran (${d.crashCount} times).`,
  CHOKAQ_CTX_REVOKED: (d: { jobId: string; call: string }) =>
    `ctx.${d.call} was called after the attempt of job ${d.jobId} had ended. Await everything a handler starts before it returns.`,
  CHOKAQ_RETRY_EXPIRED: (d: { jobId: string; lifetimeMs: number }) =>
    `The retry lifetime of job ${d.jobId} (${d.lifetimeMs} ms from its first start) has passed.`,
  CHOKAQ_RESULT_INVALID: (d: { type: string; issues: readonly string[] }) =>
    `The result of "${d.type}" fails its schema:\n- ${d.issues.join('\n- ')}`,
  CHOKAQ_NEXT_TWICE: (d: { jobId: string }) =>
    `A middleware called next() twice for job ${d.jobId}, which would run its handler twice. Call next() once and return what it gives.`,
  CHOKAQ_COMPLETE_TWICE: (d: { jobId: string }) =>
    `Job ${d.jobId} was completed in a transaction already; do nothing after it.`,
  CHOKAQ_COMPLETE_NOT_RETURNED: (d: { jobId: string }) =>
    `The handler of job ${d.jobId} completed it in a transaction but did not return what that gave. Return what ctx.complete (or ctx.completeSync) gives.`,
  CHOKAQ_COMPLETE_ROLLED_BACK: (d: { jobId: string }) =>
    `The handler of job ${d.jobId} returned what ctx.complete (or ctx.completeSync) gave, but its transaction did not commit: nothing was recorded. Let the error of the transaction reach the engine.`,
  CHOKAQ_COMPLETE_IN_DOUBT: (d: { jobId: string }) =>
    `Job ${d.jobId} was not completed in the transaction: nobody knows what one of its effects did. Let the errors of effects end the handler.`,
  CHOKAQ_EFFECT_IN_DOUBT: (d: { effect: string; jobId: string; why: string }) =>
    `Nobody knows whether effect "${d.effect}" of job ${d.jobId} happened: ${d.why}. The job waits for a person: chokaq review.`,
  CHOKAQ_EFFECT_TIMEOUT: (d: { effect: string; timeoutMs: number }) =>
    `The call of effect "${d.effect}" took longer than its callTimeout of ${d.timeoutMs} ms, so its signal was aborted. What became of it is not known. Give the provider's client a shorter timeout, or the effect a longer callTimeout.`,
  CHOKAQ_EFFECT_INPUT_CHANGED: (d: { effect: string; jobId: string }) =>
    `Effect "${d.effect}" of job ${d.jobId} is recorded with another input. Repeating it under the same key could act twice, so it was not called. Derive the input from the payload and from memos only.`,
  CHOKAQ_EFFECT_DOUBLE: (d: { effect: string; jobId: string }) =>
    `Effect "${d.effect}" of job ${d.jobId} happened twice: two calls report success under different keys. Compensate one.`,
  CHOKAQ_EFFECT_ORPHANED: (d: { effects: readonly string[]; jobId: string }) =>
    `Job ${d.jobId} has recorded effects that its handler no longer declares: ${d.effects.join(', ')}. Deploy a handler that declares them, or decide in review.`,
  CHOKAQ_EFFECT_REPEATED: (d: { effect: string; item: string }) =>
    `Effect "${d.effect}"${d.item === '' ? '' : ` with item "${d.item}"`} was called twice in one attempt. Give each call its own item: { item: id }.`,
  CHOKAQ_EFFECT_UNAWAITED: (d: { effect: string; jobId: string }) =>
    `The handler of job ${d.jobId} returned while effect "${d.effect}" was still under way. Await every effect.`,
  CHOKAQ_EFFECT_IN_TRANSACTION: (d: { effect: string }) =>
    `Effect "${d.effect}" was called inside a transaction: it would have happened even if the transaction rolled back. Call it before or after.`,
  CHOKAQ_EFFECT_AFTER_COMPLETE: (d: { effect: string; jobId: string }) =>
    `Effect "${d.effect}" was called after job ${d.jobId} was completed in a transaction. Completing is the last thing a handler does.`,
  CHOKAQ_EFFECT_RESULT_DROPPED: (d: { effect: string; problem: string }) =>
    `Effect "${d.effect}" happened and is recorded as done, but its result cannot be stored: ${d.problem} Return ids instead of documents.`,
  CHOKAQ_EFFECT_WAITING: (d: { effect: string; why: string; delayMs: number }) =>
    `Effect "${d.effect}" is in doubt: ${d.why}. It is asked again in ${d.delayMs} ms.`,
  CHOKAQ_CHECKPOINT_REPEATED: (d: { name: string }) =>
    `ctx.transaction("${d.name}") was called twice in one attempt. Give each transaction its own name.`,
  CHOKAQ_MEMO_REPEATED: (d: { name: string }) =>
    `ctx.memo("${d.name}") was called twice in one attempt. Give each memo its own name.`,
  CHOKAQ_WORKER_STATE: (d: { call: string; state: string }) =>
    `worker.${d.call} is not possible while the worker is ${d.state}.`,

  // ---- storage
  CHOKAQ_STORAGE_BUSY: (d: { waitedMs: number }) =>
    `The database was locked by another writer for ${d.waitedMs} ms. Nothing was written; try again.`,
  CHOKAQ_STORAGE_CLOSED: (d: { call: string }) => `${d.call} was called after close().`,
  CHOKAQ_STORAGE_FULL: (d: { problem: string }) =>
    `The database cannot grow: ${d.problem}. Nothing was written; free space and try again.`,
  CHOKAQ_STORAGE_READ_ONLY: (d: { path: string }) =>
    `The database ${d.path} is read-only. Nothing was written; give the process write access to the file and its folder.`,
  CHOKAQ_STORAGE_CORRUPT: (d: { path: string; problem: string }) =>
    `The file ${d.path} is no intact database: ${d.problem}. It was left as it is; restore a copy or name another file.`,
  CHOKAQ_STORAGE_FOREIGN: (d: { path: string; problem: string }) =>
    `The file ${d.path} does not belong to ChokaQ: ${d.problem}. It was left as it is; name another file.`,
  CHOKAQ_SCHEMA_NEWER: (d: { found: number; known: number }) =>
    `The database has schema version ${d.found}; this version of chokaq knows ${d.known}. Upgrade chokaq in this process.`,
  CHOKAQ_SCHEMA_MISSING: (d: { where: string }) =>
    `${d.where} has no ChokaQ tables. Open it once with createChokaQ, or point to the database that holds the jobs.`,
  CHOKAQ_NOT_DURABLE: (d: { found: string }) =>
    `This connection has synchronous=${d.found}: an acknowledged job could be lost with the power. Run PRAGMA synchronous=FULL on it after opening.`,
  CHOKAQ_DRIVER_MISSING: (d: { packageName: string }) =>
    `The package ${d.packageName} is not installed. Run: npm install ${d.packageName}`,
  CHOKAQ_STORAGE_FAILED: (d: { problem: string }) => `The storage failed: ${d.problem}`,

  // ---- operators
  CHOKAQ_JOB_NOT_FOUND: (d: { id: string }) => `No job has the id ${d.id}: it never existed or its history was pruned.`,
  CHOKAQ_ABSENCE_UNPROVEN: (d: { id: string; effects: readonly string[]; waitMs: number | undefined }) =>
    `Job ${d.id} is in doubt${d.effects.length > 0 ? ` over ${d.effects.join(', ')}` : ''}, so a new operation could act beside what happened already. ${
      d.waitMs === undefined
        ? 'Look at the provider. If it happened, adopt it: chokaq review. If it did not, say so: absence with where you looked (--absence), or retry the job in review.'
        : `A call that is still under way would be seen in ${d.waitMs} ms: look again then.`
    }`,
  CHOKAQ_NOT_POSSIBLE: (d: { act: string; id: string; state: string }) =>
    `${d.act} is not possible for job ${d.id}: it is ${d.state}.`,
  CHOKAQ_CURSOR_INVALID: (d: { value: string }) =>
    `"${d.value}" is no cursor of this list. Start again without a cursor.`,
  CHOKAQ_ASSERTION: (d: { what: string }) => `An invariant of ChokaQ does not hold: ${d.what}. Please report it.`,
} as const satisfies Registry

export type ErrorCode = keyof typeof registry
export type ErrorDetails<C extends ErrorCode> = Parameters<(typeof registry)[C]>[0]
export const errorCodes = Object.keys(registry) as readonly ErrorCode[]

/** Errors after which the same call may simply be repeated: nothing was written, or the write can be read back. */
const transientCodes: ReadonlySet<string> = new Set<ErrorCode>([
  'CHOKAQ_STORAGE_BUSY',
  'CHOKAQ_STORAGE_FULL',
  'CHOKAQ_STORAGE_FAILED',
])

const brand = Symbol.for('chokaq.error')

function isBranded(value: unknown): boolean {
  try {
    return typeof value === 'object' && value !== null && brand in value
  } catch {
    // A Proxy whose traps throw is no error of ours.
    return false
  }
}

/**
 * Every error of ChokaQ. `code` is stable and listed in docs/errors.md; `details` holds the values of the message.
 * `instanceof` works across two copies of the package, because it looks at a brand and not at the class.
 */
export class ChokaQError<C extends ErrorCode = ErrorCode> extends Error {
  override readonly name: string = 'ChokaQError'
  readonly code: C
  readonly details: ErrorDetails<C>

  constructor(code: C, details: ErrorDetails<C>, options?: { readonly cause?: unknown }) {
    super((registry[code] as (d: ErrorDetails<C>) => string)(details), options)
    this.code = code
    this.details = details
    Object.defineProperty(this, brand, { value: true })
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    // A user's subclass inherits this method; for it the prototype chain decides, or every ChokaQ error would be one.
    if (this !== ChokaQError) return Function.prototype[Symbol.hasInstance].call(this, value)
    return isBranded(value)
  }
}

/** Whether the same call may be repeated after this error. */
export function isTransient(error: unknown): boolean {
  return error instanceof ChokaQError && transientCodes.has(error.code as ErrorCode)
}

/** Whether an error is a ChokaQ error with this code; narrows `details`. */
export function hasCode<C extends ErrorCode>(error: unknown, code: C): error is ChokaQError<C> {
  return error instanceof ChokaQError && error.code === code
}

/** States an invariant. What it refuses is a bug of ChokaQ, never of the user. */
export function assert(condition: unknown, what: string): asserts condition {
  if (!condition) throw new ChokaQError('CHOKAQ_ASSERTION', { what })
}

/** The end of an exhaustive switch: does not compile while a case is missing. */
export function unreachable(value: never, what: string): never {
  throw new ChokaQError('CHOKAQ_ASSERTION', { what: `${what}: ${String(value)}` })
}
