/**
 * Every attempt ends here: settle actions of the same tick share one transaction, and each promise resolves when its own
 * row is durable. An outcome is offered until it is taken, known to be taken already, or the lease is certainly gone.
 */
import type { WorkerConfig } from '../../core/config.ts'
import type { ClaimOutcome } from '../../core/counters.ts'
import { ChokaQError, unreachable } from '../../core/errors.ts'
import type { EventBus } from '../../core/events.ts'
import { describeFailure, type StoredFailure } from '../../core/failure.ts'
import type { FetchedJob } from '../../core/job.ts'
import type { Runtime } from '../../core/runtime.ts'
import type { SettleAction, Settlement, SettleVerdict, StorageDriver } from '../../core/storage.ts'
import { Batcher } from '../batcher.ts'
import { withDeadline } from '../deadline.ts'
import { persist } from '../persist.ts'

export interface SettlerParts {
  readonly driver: StorageDriver
  readonly runtime: Runtime
  readonly events: EventBus
  readonly config: WorkerConfig
  /** True once the leases are certainly gone: offering an outcome again has no point. */
  readonly stop: () => boolean
}

export interface SettleContext {
  readonly job: FetchedJob
  readonly workerId: string
  readonly attempt: number
  readonly keyed: boolean
  readonly durationMs: number
  /** For `job.released`. */
  readonly why: string
}

const maxBatchCount = 500

export class Settler {
  readonly #parts: SettlerParts
  readonly #batcher: Batcher<Settlement, SettleVerdict>

  constructor(parts: SettlerParts) {
    this.#parts = parts
    const { driver, runtime, events, config, stop } = parts
    this.#batcher = new Batcher({
      scheduler: runtime.scheduler,
      maxBatchCount,
      run: (settlements) =>
        persist({ scheduler: runtime.scheduler, events, during: 'settle', stop }, () =>
          withDeadline(runtime.scheduler, config.statementDeadlineMs, 'settle', driver.settle(settlements)),
        ),
    })
  }

  /** Rejects only where the storage failed for longer than the lease lasted; then rescue decides. */
  async settle(action: SettleAction, context: SettleContext): Promise<SettleVerdict> {
    const { lease } = context.job
    let verdict = await this.#batcher.submit({ lease, action })
    if (verdict.kind === 'refused') {
      // Recording an outcome must never fail because of its content: the plainest form of the same outcome follows.
      const refused = verdict.error
      this.#parts.events.emit({ name: 'storage.failed', during: 'settle', failure: describeFailure(refused) })
      let plain = plainest(action, refused)
      verdict = await this.#batcher.submit({ lease, action: plain })
      if (verdict.kind === 'refused') {
        // What is left (a child, for one) is the content of the outcome itself: a person has to look.
        plain = { kind: 'bury', reason: 'ReviewRequested', failure: failureOf(refused), hold: true }
        verdict = await this.#batcher.submit({ lease, action: plain })
      }
      if (verdict.kind === 'refused') throw verdict.error
      this.#report(plain, verdict, context)
      return verdict
    }
    this.#report(action, verdict, context)
    return verdict
  }

  #report(action: SettleAction, verdict: SettleVerdict, context: SettleContext): void {
    const { events } = this.#parts
    if (!events.active) return
    const { job, workerId, attempt } = context
    const of = { jobId: job.lease.jobId, type: job.type, queue: job.queue, workerId, attempt }
    if (verdict.kind === 'lost') {
      events.emit({ name: 'job.lease_lost', ...of, at: 'settle' })
      return
    }
    if (verdict.kind === 'refused') return
    const claim = context.keyed ? claimOutcome(action, verdict.outcome) : undefined
    if (claim !== undefined) {
      events.emit({ name: 'idempotency.claim', outcome: claim, jobId: of.jobId, type: of.type, queue: of.queue })
    }
    switch (verdict.outcome) {
      case 'completed':
        events.emit({ name: 'job.completed', ...of, durationMs: context.durationMs, repeated: verdict.repeated })
        for (const child of verdict.deadChildren ?? []) {
          events.emit({ name: 'job.dead', ...child, workerId, attempt: 0, reason: 'KeyReused', hold: false })
        }
        return
      case 'conflict':
        events.emit({ name: 'job.dead', ...of, reason: 'CompleteConflict', hold: false, failure: null })
        return
      case 'retried':
        if (action.kind === 'retry') events.emit({ name: 'job.retried', ...of, ...pick(action) })
        return
      case 'dead':
        events.emit({ name: 'job.dead', ...of, ...dead(action) })
        return
      case 'skipped':
        if (action.kind === 'skip') {
          events.emit({ name: 'job.skipped', ...of, duplicateOf: action.duplicateOf, holder: action.holder })
        }
        return
      case 'deferred':
        if (action.kind === 'defer') events.emit({ name: 'job.deferred', ...of, delayMs: action.delayMs })
        return
      case 'cancelled':
        events.emit({ name: 'job.cancelled', ...of })
        return
      case 'released':
        events.emit({ name: 'job.released', ...of, why: context.why })
        return
      default:
        unreachable(verdict.outcome, 'settle outcome')
    }
  }
}

function pick(action: Extract<SettleAction, { kind: 'retry' }>): Pick<typeof action, 'delayMs' | 'reason' | 'failure'> {
  return { delayMs: action.delayMs, reason: action.reason, failure: action.failure }
}

function dead(action: SettleAction): Pick<Extract<SettleAction, { kind: 'bury' }>, 'reason' | 'hold' | 'failure'> {
  if (action.kind === 'bury') return { reason: action.reason, hold: action.hold, failure: action.failure }
  return { reason: 'Interrupted', hold: true, failure: null }
}

/** The outcome counted in `chokaq.idempotency.claims`, as the storage counts it. */
export function claimOutcome(action: SettleAction, outcome: string): ClaimOutcome | undefined {
  if (outcome === 'completed') return 'completed'
  if (outcome === 'conflict') return 'complete_conflict'
  if (action.kind === 'skip')
    return action.holder === 'in-progress' || action.holder === 'in-review'
      ? 'in_progress_duplicate'
      : 'completed_duplicate'
  if (action.kind === 'defer') return 'in_progress_duplicate'
  if (action.kind === 'bury' && action.reason === 'EmptyKey') return 'empty_key'
  if (outcome === 'dead') return action.kind === 'bury' && !action.hold ? 'released' : undefined
  return outcome === 'cancelled' ? 'released' : undefined
}

function failureOf(refused: Error): StoredFailure {
  return describeFailure(new ChokaQError('CHOKAQ_STORAGE_FAILED', { problem: describeFailure(refused).message }))
}

function plainest(action: SettleAction, refused: Error): SettleAction {
  const failure = failureOf(refused)
  switch (action.kind) {
    case 'complete':
      return { ...action, result: null }
    case 'retry':
    case 'bury':
      return { ...action, failure }
    case 'skip':
      return { ...action, result: null }
    case 'defer':
    case 'cancel':
    case 'release':
      return action
    default:
      return unreachable(action, 'settle action')
  }
}
