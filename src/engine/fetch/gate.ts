/**
 * From fetched to started: read the payload, claim the key where the producer could not, start. Whatever keeps the
 * handler from running ends here with one settle action.
 *
 * Claim and start never share a transaction: start must look at the marker in a statement that began after the claim
 * was committed. Breaking that let 167 of 3,816 raced keys run past a live marker.
 */
import type { WorkerConfig } from '../../core/config.ts'
import { ChokaQError, hasCode, unreachable } from '../../core/errors.ts'
import type { EventBus } from '../../core/events.ts'
import { describeFailure } from '../../core/failure.ts'
import type { ResolvedHandler } from '../../core/handler.ts'
import type { DeadReason, FetchedJob } from '../../core/job.ts'
import { keyedFields, readPayload, type PreparedPayload } from '../../core/preparation.ts'
import type { Runtime } from '../../core/runtime.ts'
import type {
  ClaimRequest,
  ClaimVerdict,
  SettleAction,
  StartRequest,
  StartVerdict,
  StorageDriver,
  TypePolicy,
} from '../../core/storage.ts'
import { Batcher } from '../batcher.ts'
import { withDeadline } from '../deadline.ts'
import { persist } from '../persist.ts'

export type GateResult =
  | {
      readonly kind: 'run'
      readonly payload: unknown
      readonly keyHash: string | undefined
      readonly keyPrefix: string | undefined
      readonly attempt: number
      readonly firstStartedAtMs: number
    }
  | { readonly kind: 'settle'; readonly action: SettleAction }
  | { readonly kind: 'lost' }

export interface GateParts {
  readonly driver: StorageDriver
  readonly runtime: Runtime
  readonly events: EventBus
  readonly config: WorkerConfig
  /** True where a lost storage call must not be repeated: the worker is fenced or forced to stop. */
  readonly stop: () => boolean
}

/** How long a deferred duplicate waits before it asks again. */
export const deferMs = 5_000
const maxBatchCount = 500

export class Gate {
  readonly #parts: GateParts
  readonly #claims: Batcher<ClaimRequest, ClaimVerdict>
  readonly #starts: Batcher<StartRequest, StartVerdict>

  constructor(parts: GateParts) {
    this.#parts = parts
    const { driver, runtime, events, config, stop } = parts
    const call = <T>(during: string, run: () => Promise<T>): Promise<T> =>
      persist({ scheduler: runtime.scheduler, events, during, stop }, () =>
        withDeadline(runtime.scheduler, config.statementDeadlineMs, during, run()),
      )
    const scheduler = runtime.scheduler
    this.#claims = new Batcher({ scheduler, maxBatchCount, run: (r) => call('claim', () => driver.claim(r)) })
    this.#starts = new Batcher({ scheduler, maxBatchCount, run: (r) => call('start', () => driver.start(r)) })
  }

  /** A promise only where something has to be waited for. */
  pass(job: FetchedJob, handler: ResolvedHandler, policy: TypePolicy): GateResult | Promise<GateResult> {
    return job.state === 'processing' ? this.#readStarted(job, handler) : this.#readAndStart(job, handler, policy)
  }

  /** The fetch has started it, so it has its key if it needs one. */
  #readStarted(job: FetchedJob, handler: ResolvedHandler): GateResult | Promise<GateResult> {
    const started = (payload: PreparedPayload): GateResult => {
      const firstStartedAtMs = job.firstStartedAtMs ?? this.#parts.runtime.clock.nowMs()
      return run(readOf(job, payload), job.attempt, firstStartedAtMs)
    }
    try {
      const payload = readPayload(handler.contract, job.payload)
      return payload instanceof Promise ? payload.then(started).catch(refusal) : started(payload)
    } catch (error) {
      return refusal(error)
    }
  }

  async #readAndStart(job: FetchedJob, handler: ResolvedHandler, policy: TypePolicy): Promise<GateResult> {
    const hasKey = !policy.keyed || job.key !== undefined
    // Reading the payload runs the user's schema, which may be what took the last worker down. A suspect is started
    // first: then the crash is charged to it alone, and not as a fetch crash to all that were fetched with it.
    if (job.suspect && job.state === 'fetched' && hasKey) return this.#startThenRead(job, handler, policy)
    const read = await this.#read(job, handler, policy)
    if (read.kind !== 'read') return read
    const verdict = await this.#starts.submit({ lease: job.lease, policy })
    if (verdict.kind !== 'started') return this.#notStarted(job, handler, verdict)
    return run(read, verdict.attempt, verdict.firstStartedAtMs)
  }

  async #startThenRead(job: FetchedJob, handler: ResolvedHandler, policy: TypePolicy): Promise<GateResult> {
    const verdict = await this.#starts.submit({ lease: job.lease, policy })
    if (verdict.kind !== 'started') return this.#notStarted(job, handler, verdict)
    const read = await this.#read(job, handler, policy)
    return read.kind === 'read' ? run(read, verdict.attempt, verdict.firstStartedAtMs) : read
  }

  /** The payload through its schema, and the key claimed where the producer could not. */
  async #read(job: FetchedJob, handler: ResolvedHandler, policy: TypePolicy): Promise<Read | GateResult> {
    try {
      const read = readPayload(handler.contract, job.payload)
      const payload = read instanceof Promise ? await read : read
      if (!policy.keyed || job.key !== undefined) {
        return readOf(job, payload)
      }
      const claim = await this.#claim(job, handler, payload)
      return 'kind' in claim ? claim : { kind: 'read', payload, ...claim }
    } catch (error) {
      return refusal(error)
    }
  }

  async #claim(
    job: FetchedJob,
    handler: ResolvedHandler,
    payload: PreparedPayload,
  ): Promise<GateResult | { hash: string; prefix: string }> {
    const of = { id: job.lease.jobId, tenant: job.tenant }
    const { key, fingerprint } = keyedFields(handler.contract, payload, of, this.#parts.runtime)
    if (key === undefined || fingerprint === undefined) {
      throw new ChokaQError('CHOKAQ_ASSERTION', { what: `the keyed type ${job.type} gave no key` })
    }
    const verdict = await this.#claims.submit({ lease: job.lease, key, fingerprint })
    switch (verdict.kind) {
      case 'claimed':
        return { hash: key.hash, prefix: key.prefix }
      case 'held':
        if (!verdict.sameFingerprint) return keyReused(job, verdict.jobId)
        return duplicate(handler, verdict.jobId, 'in-progress', null)
      case 'lost':
        return { kind: 'lost' }
      default:
        return unreachable(verdict, 'claim verdict')
    }
  }

  #notStarted(
    job: FetchedJob,
    handler: ResolvedHandler,
    verdict: Exclude<StartVerdict, { kind: 'started' }>,
  ): GateResult {
    switch (verdict.kind) {
      case 'duplicate':
        if (!verdict.sameFingerprint) return keyReused(job, verdict.jobId)
        return duplicate(handler, verdict.jobId, verdict.holder, verdict.result)
      case 'paused':
        return { kind: 'settle', action: { kind: 'release' } }
      case 'cancelled':
        return { kind: 'settle', action: { kind: 'cancel', hold: false } }
      case 'expired': {
        const { jobId } = job.lease
        const error = new ChokaQError('CHOKAQ_RETRY_EXPIRED', { jobId, lifetimeMs: handler.retry.lifetimeMs })
        return refuse('RetryLifetimeExpired', error)
      }
      case 'lost':
        return { kind: 'lost' }
      default:
        return unreachable(verdict, 'start verdict')
    }
  }
}

interface Read {
  readonly kind: 'read'
  readonly payload: PreparedPayload
  readonly hash: string | undefined
  readonly prefix: string | undefined
}

function readOf(job: FetchedJob, payload: PreparedPayload): Read {
  return { kind: 'read', payload, hash: job.key?.hash, prefix: job.key?.prefix }
}

function run({ payload, hash, prefix }: Read, attempt: number, firstStartedAtMs: number): GateResult {
  return { kind: 'run', payload: payload.output, keyHash: hash, keyPrefix: prefix, attempt, firstStartedAtMs }
}

function duplicate(
  handler: ResolvedHandler,
  jobId: string,
  holder: Extract<StartVerdict, { kind: 'duplicate' }>['holder'],
  result: string | null,
): GateResult {
  const unsettled = holder === 'in-progress' || holder === 'in-review'
  if (unsettled && handler.onDuplicate === 'defer')
    return { kind: 'settle', action: { kind: 'defer', delayMs: deferMs } }
  return { kind: 'settle', action: { kind: 'skip', duplicateOf: jobId, holder, result } }
}

function keyReused(job: FetchedJob, holderId: string): GateResult {
  return refuse('KeyReused', new ChokaQError('CHOKAQ_KEY_REUSED', { type: job.type, holderId, paths: [] }))
}

function refuse(reason: DeadReason, error: unknown): GateResult {
  return { kind: 'settle', action: { kind: 'bury', reason, failure: describeFailure(error), hold: false } }
}

/** Throws on what is not the content's fault. */
function refusal(error: unknown): GateResult {
  if (!isContentError(error)) throw error
  return refuse(refusalReason(error), error)
}

/** Errors that the payload or the contract's functions cause: the same on every attempt, so retrying has no point. */
function isContentError(error: unknown): boolean {
  return (
    error instanceof SyntaxError ||
    hasCode(error, 'CHOKAQ_PAYLOAD_INVALID') ||
    hasCode(error, 'CHOKAQ_EMPTY_KEY') ||
    hasCode(error, 'CHOKAQ_KEY_THROWN') ||
    hasCode(error, 'CHOKAQ_CONTRACT_INVALID') ||
    hasCode(error, 'CHOKAQ_NOT_JSON')
  )
}

function refusalReason(error: unknown): DeadReason {
  return hasCode(error, 'CHOKAQ_EMPTY_KEY') ? 'EmptyKey' : 'Rejected'
}
