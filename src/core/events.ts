/**
 * The event catalogue: everything the engine tells the world, in one closed union. Logs, metrics and the Deck subscribe
 * here; stages emit and know no subscriber. docs/events.md lists the same names; a test compares them.
 */
import type { ClaimOutcome } from './counters.ts'
import type { EffectOutcome } from './ledger.ts'
import type { StoredFailure } from './failure.ts'
import type { DeadReason } from './job.ts'
import type { AbortKind } from './outcome.ts'
import type { HolderState, PruneCounts, RetryReason } from './storage.ts'

interface OfJob {
  readonly jobId: string
  readonly type: string
  readonly queue: string
}

interface OfAttempt extends OfJob {
  readonly workerId: string
  readonly attempt: number
}

export type ChokaQEvent =
  // enqueue
  | ({ readonly name: 'job.enqueued' } & OfJob)
  | ({ readonly name: 'job.deduplicated'; readonly answer: string; readonly holderId: string } & OfJob)
  // fetch
  | ({ readonly name: 'job.started'; readonly queueLagMs: number; readonly crashCount: number } & OfAttempt)
  | ({ readonly name: 'job.skipped'; readonly duplicateOf: string; readonly holder: HolderState } & OfAttempt)
  | ({ readonly name: 'job.deferred'; readonly delayMs: number } & OfAttempt)
  | ({ readonly name: 'job.released'; readonly why: string } & OfAttempt)
  | {
      readonly name: 'idempotency.claim'
      readonly outcome: ClaimOutcome
      readonly jobId: string
      readonly type: string
      readonly queue: string
    }
  // process
  | ({ readonly name: 'job.aborted'; readonly by: AbortKind } & OfAttempt)
  | ({ readonly name: 'job.abandoned'; readonly abandonedCount: number } & OfAttempt)
  | ({
      readonly name: 'job.log'
      readonly message: string
      readonly fields: Readonly<Record<string, unknown>>
    } & OfAttempt)
  | ({ readonly name: 'effect.outcome'; readonly effect: string; readonly outcome: EffectOutcome } & OfAttempt)
  // settle
  | ({ readonly name: 'job.completed'; readonly durationMs: number; readonly repeated: boolean } & OfAttempt)
  | ({
      readonly name: 'job.retried'
      readonly delayMs: number
      readonly reason: RetryReason
      readonly failure: StoredFailure | null
    } & OfAttempt)
  | ({
      readonly name: 'job.dead'
      readonly reason: DeadReason
      readonly hold: boolean
      readonly failure: StoredFailure | null
    } & OfAttempt)
  | ({ readonly name: 'job.cancelled' } & OfAttempt)
  | ({ readonly name: 'job.lease_lost'; readonly at: 'start' | 'settle' | 'fence' } & OfAttempt)
  // sweep
  | {
      readonly name: 'worker.declared_dead'
      readonly workerId: string
      readonly by: string
      readonly how: 'process-gone' | 'silence'
    }
  | ({
      readonly name: 'job.rescued'
      readonly went: 'pending' | 'dead' | 'cancelled'
      readonly crashed: boolean
      readonly workerId: string
    } & OfJob)
  | { readonly name: 'sweep.promoted'; readonly promotedCount: number }
  | ({ readonly name: 'sweep.pruned' } & PruneCounts)
  // worker and storage
  | { readonly name: 'worker.started'; readonly workerId: string; readonly concurrency: number }
  | { readonly name: 'worker.warning'; readonly workerId: string; readonly rule: string; readonly text: string }
  | {
      readonly name: 'worker.beat_failed'
      readonly workerId: string
      readonly failure: StoredFailure
      readonly sinceBeatMs: number
    }
  | { readonly name: 'worker.stalled'; readonly workerId: string; readonly stalledMs: number }
  | {
      readonly name: 'worker.fenced'
      readonly workerId: string
      readonly why: 'beats-failed' | 'declared-dead'
      readonly lostCount: number
    }
  | { readonly name: 'worker.disowned'; readonly workerId: string; readonly disownedCount: number }
  | { readonly name: 'worker.stopping'; readonly workerId: string }
  | { readonly name: 'worker.stopped'; readonly workerId: string }
  | { readonly name: 'storage.failed'; readonly during: string; readonly failure: StoredFailure }
  | {
      readonly name: 'storage.polling'
      readonly workerId: string
      readonly pollMs: number
      readonly failure: StoredFailure | null
    }
  | { readonly name: 'storage.listening'; readonly workerId: string }

export type EventName = ChokaQEvent['name']
export type EventListener = (event: ChokaQEvent) => void

/** Every name of the union, once. `satisfies` makes a missing or unknown name a type error. */
const names = {
  'job.enqueued': true,
  'job.deduplicated': true,
  'job.started': true,
  'job.skipped': true,
  'job.deferred': true,
  'job.released': true,
  'idempotency.claim': true,
  'job.aborted': true,
  'job.abandoned': true,
  'job.log': true,
  'effect.outcome': true,
  'job.completed': true,
  'job.retried': true,
  'job.dead': true,
  'job.cancelled': true,
  'job.lease_lost': true,
  'worker.declared_dead': true,
  'job.rescued': true,
  'sweep.promoted': true,
  'sweep.pruned': true,
  'worker.started': true,
  'worker.warning': true,
  'worker.beat_failed': true,
  'worker.stalled': true,
  'worker.fenced': true,
  'worker.disowned': true,
  'worker.stopping': true,
  'worker.stopped': true,
  'storage.failed': true,
  'storage.polling': true,
  'storage.listening': true,
} as const satisfies Record<EventName, true>
export const eventNames = Object.keys(names) as readonly EventName[]

/** Where stages emit. A listener that throws is dropped from this one event; it never reaches the engine. */
export class EventBus {
  readonly #listeners = new Set<EventListener>()

  /** True while somebody listens: lets hot paths skip building an event. */
  get active(): boolean {
    return this.#listeners.size > 0
  }

  subscribe(listener: EventListener): () => void {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  emit(event: ChokaQEvent): void {
    for (const listener of this.#listeners) {
      try {
        // A listener may be asynchronous in spite of its type; its rejection must not end the process.
        const returned: unknown = listener(event)
        if (returned instanceof Promise) returned.catch(() => undefined)
      } catch {
        // A subscriber's failure must not cost a job its outcome, and there is nobody to tell.
      }
    }
  }
}
