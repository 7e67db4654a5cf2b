/** One started job: its handler runs, and what it did becomes one settle action. */
import type { StoredFailure } from '../core/failure.ts'
import type { FetchedJob } from '../core/job.ts'
import { decide, type AbortKind, type AttemptEnd } from '../core/outcome.ts'
import { keyText } from '../core/preparation.ts'
import type { SettleAction } from '../core/storage.ts'
import type { RunEnd } from '../core/tracing.ts'
import { Attempt } from './process/attempt.ts'
import type { AttemptIdentity, WorkerCore } from './worker-core.ts'
import { AttemptServices, type RunnableGate } from './worker-services.ts'
import type { RegisteredType } from './worker-types.ts'

export interface AttemptOutcome {
  /** Undefined where the lease is lost and there is nothing to settle. */
  readonly action: SettleAction | undefined
  readonly durationMs: number
  /** Where the handler was abandoned: settles if it ever ends. */
  readonly abandoned: Promise<unknown> | undefined
}

export class WorkerAttempt {
  readonly #core: WorkerCore
  readonly #job: FetchedJob
  readonly #type: RegisteredType
  readonly #gate: RunnableGate
  readonly #attempt: Attempt
  readonly #services: AttemptServices
  readonly #startedMs: number
  readonly #of: AttemptIdentity

  constructor(
    core: WorkerCore,
    of: AttemptIdentity,
    job: FetchedJob,
    type: RegisteredType,
    gate: RunnableGate,
    /** Whether this worker may still act on its leases. */
    confirmed: () => boolean,
  ) {
    this.#core = core
    this.#job = job
    this.#type = type
    this.#gate = gate
    this.#of = of
    this.#services = new AttemptServices({ core, of, job, type, gate, confirmed })
    const { runtime, config, events, middleware } = core
    const { timeoutMs } = type.policy
    this.#startedMs = runtime.clock.monotonicMs()
    const startedAtMs = runtime.clock.nowMs()
    if (events.active) {
      const queueLagMs = Math.max(0, startedAtMs - job.runAtMs)
      events.emit({ name: 'job.started', ...of, queueLagMs, crashCount: job.crashCount })
      if (type.policy.keyed) {
        const { jobId, queue } = of
        events.emit({ name: 'idempotency.claim', outcome: 'claimed', jobId, type: of.type, queue })
      }
    }
    const { keyHash, keyPrefix, attempt, payload } = gate
    this.#attempt = new Attempt(
      {
        job,
        keyHash,
        key: keyText(type.handler.contract, payload, job.lease.jobId) ?? keyPrefix,
        attempt,
        payload,
        deadlineMs: startedAtMs + timeoutMs,
      },
      {
        scheduler: runtime.scheduler,
        handler: type.handler,
        middleware,
        timeoutMs,
        abortGraceMs: config.abortGraceMs,
        services: this.#services,
        onAbort: (by) => {
          events.emit({ name: 'job.aborted', ...of, by })
        },
      },
    )
  }

  abort(by: AbortKind): void {
    this.#attempt.abort(by)
  }

  /** Never rejects, whatever the handler does. */
  run(): Promise<AttemptOutcome> {
    const { tracer } = this.#core.tracing
    if (tracer === undefined) return this.#run()
    return tracer.process({ ...this.#of, traceContext: this.#job.traceContext }, () => this.#run(), endOf)
  }

  async #run(): Promise<AttemptOutcome> {
    const before = this.#mayBeStopped ? await this.#before() : undefined
    const result = before === undefined ? await this.#attempt.run() : { kind: 'ended' as const, end: before }
    const scope = this.#services.startedScope
    const end = scope === undefined || before !== undefined ? result.end : await scope.finish(result.end)
    return {
      action: this.#decide(end),
      durationMs: this.#core.runtime.clock.monotonicMs() - this.#startedMs,
      abandoned: result.kind === 'abandoned' ? result.ended : undefined,
    }
  }

  /** Only a later attempt can find something recorded that stops it. */
  get #mayBeStopped(): boolean {
    return this.#type.policy.keyed && this.#gate.attempt >= 2
  }

  /** A storage that fails now lets it run and be guarded. */
  async #before(): Promise<AttemptEnd | undefined> {
    try {
      return await this.#services.effectScope(this.#attempt.guards).check()
    } catch (thrown) {
      return { kind: 'threw', thrown }
    }
  }

  #decide(end: AttemptEnd): SettleAction | undefined {
    const { runtime, client } = this.#core
    const { handler, policy } = this.#type
    const nowMs = runtime.clock.nowMs()
    return decide(end, {
      failureCount: this.#job.failureCount,
      sinceFirstStartMs: Math.max(0, nowMs - this.#gate.firstStartedAtMs),
      whenInterrupted: handler.whenInterrupted,
      retry: handler.retry,
      markerLifeMs: policy.markerLifeMs,
      guarded: handler.effects.size > 0,
      keep: handler.keepsCompleted ? { kind: 'full' } : { kind: 'stub', forMs: client.resendForMs },
      random: runtime.random(),
      nowMs,
    })
  }
}

/** What a tracer is told of a run. Without a lease nothing is settled, and nobody knows what came of it. */
function endOf({ action, durationMs }: AttemptOutcome): RunEnd {
  if (action === undefined) return { durationMs, failure: lostLease }
  // A handler that asks to be called later, or that a shutdown cut off, has not failed.
  const hasFailed = action.kind === 'bury' || (action.kind === 'retry' && action.charge === 'failure')
  return { durationMs, failure: hasFailed ? (action.failure ?? undefined) : undefined }
}

const lostLease: StoredFailure = { name: 'LeaseLost', message: 'The lease was lost while the handler ran.' }
