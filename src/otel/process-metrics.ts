/** What this process does, from its events, as it happens. */
import type { Attributes, Counter, Histogram, Meter, UpDownCounter } from '@opentelemetry/api'
import type { ChokaQEvent } from '../core/events.ts'
import type { StoredFailure } from '../core/failure.ts'
import type { DeadReason } from '../core/job.ts'
import type { RetryReason } from '../core/storage.ts'
import type { Tags } from './capped-tags.ts'
import { processInstruments, secondBuckets, type ProcessInstrument } from './catalogue.ts'

type NamesOf<K extends string> = {
  [N in ProcessInstrument]: (typeof processInstruments)[N]['kind'] extends K ? N : never
}[ProcessInstrument]

interface OfQueue {
  readonly queue: string
  readonly type: string
}

/** Refused before their handler could fail: no attempt was charged. */
const refusals: ReadonlySet<DeadReason> = new Set<DeadReason>(['Rejected', 'EmptyKey', 'KeyReused'])

/** Asked for, not failed: compared with no budget. */
const free: ReadonlySet<RetryReason> = new Set<RetryReason>(['retry-after', 'shutdown'])

export class ProcessMetrics {
  readonly #tags: Tags
  readonly #counters: ReadonlyMap<string, Counter>
  readonly #lag: Histogram
  readonly #duration: Histogram
  readonly #active: UpDownCounter
  readonly #activeIds = new Set<string>()

  constructor(meter: Meter, tags: Tags) {
    this.#tags = tags
    const options = (name: ProcessInstrument) => {
      const { unit, description } = processInstruments[name]
      return { unit, description }
    }
    const inSeconds = { advice: { explicitBucketBoundaries: [...secondBuckets] } }
    const counters = (Object.keys(processInstruments) as ProcessInstrument[]).filter(
      (name) => processInstruments[name].kind === 'counter',
    )
    this.#counters = new Map(counters.map((name) => [name, meter.createCounter(name, options(name))]))
    this.#active = meter.createUpDownCounter('chokaq.workers.active', options('chokaq.workers.active'))
    const lag = 'chokaq.jobs.queue_lag'
    const duration = 'messaging.process.duration'
    this.#lag = meter.createHistogram(lag, { ...options(lag), ...inSeconds })
    this.#duration = meter.createHistogram(duration, { ...options(duration), ...inSeconds })
  }

  /** Workers that are still active leave the count with whoever counted them. */
  stop(): void {
    this.#active.add(-this.#activeIds.size)
    this.#activeIds.clear()
  }

  on(event: ChokaQEvent): void {
    switch (event.name) {
      case 'job.enqueued':
        this.#count('chokaq.jobs.enqueued', this.#of(event))
        return
      case 'job.deduplicated':
        this.#count('chokaq.jobs.deduplicated', { ...this.#of(event), reason: event.answer })
        return
      case 'job.started':
        this.#lag.record(event.queueLagMs / 1_000, this.#of(event))
        return
      case 'idempotency.claim':
        this.#count('chokaq.idempotency.claims', { ...this.#of(event), outcome: event.outcome })
        return
      case 'effect.outcome':
        this.#count('chokaq.effects', { ...this.#of(event), outcome: event.outcome })
        return
      case 'job.completed':
        this.#count('chokaq.jobs.completed', this.#of(event))
        return
      case 'job.skipped':
        this.#count('chokaq.jobs.skipped', this.#of(event))
        return
      case 'job.retried':
        this.#retried(event)
        return
      case 'job.dead':
        this.#dead(event)
        return
      case 'job.lease_lost':
        this.#count('chokaq.jobs.state_transition_conflicts', { ...this.#of(event), reason: event.at })
        return
      default:
        this.#onWorker(event)
    }
  }

  sent(queue: string, count: number, errorType: string | undefined): void {
    this.#count('messaging.client.sent.messages', this.messaging('send', queue, errorType), count)
  }

  consumed(queue: string): void {
    this.#count('messaging.client.consumed.messages', this.messaging('process', queue, undefined))
  }

  processed(queue: string, durationMs: number, errorType: string | undefined): void {
    this.#duration.record(durationMs / 1_000, this.messaging('process', queue, errorType))
  }

  messaging(operation: 'send' | 'process', queue: string, errorType: string | undefined): Attributes {
    return {
      'messaging.system': 'chokaq',
      'messaging.destination.name': this.#tags.queue.of(queue),
      'messaging.operation.name': operation,
      'messaging.operation.type': operation,
      ...(errorType === undefined ? {} : { 'error.type': this.#tags.error.of(errorType) }),
    }
  }

  #onWorker(event: ChokaQEvent): void {
    switch (event.name) {
      case 'worker.started':
        if (this.#activeIds.has(event.workerId)) return
        this.#activeIds.add(event.workerId)
        this.#active.add(1)
        return
      // A fenced worker comes back under another id, or stops under the same one.
      case 'worker.fenced':
      case 'worker.stopped':
        if (this.#activeIds.delete(event.workerId)) this.#active.add(-1)
        return
      case 'worker.beat_failed':
        this.#count('chokaq.jobs.heartbeat_failures', this.#error(event.failure))
        return
      default:
    }
  }

  #retried(event: Extract<ChokaQEvent, { name: 'job.retried' }>): void {
    const attributes = { ...this.#of(event), reason: event.reason, ...this.#error(event.failure) }
    this.#count('chokaq.jobs.retried', attributes)
    if (!free.has(event.reason)) this.#count('chokaq.jobs.failed', attributes)
  }

  #dead(event: Extract<ChokaQEvent, { name: 'job.dead' }>): void {
    const attributes = { ...this.#of(event), reason: event.reason, ...this.#error(event.failure) }
    this.#count('chokaq.jobs.dlq', attributes)
    if (!refusals.has(event.reason)) this.#count('chokaq.jobs.failed', attributes)
  }

  #count(name: NamesOf<'counter'>, attributes: Attributes, value = 1): void {
    this.#counters.get(name)?.add(value, attributes)
  }

  #of({ queue, type }: OfQueue): { readonly queue: string; readonly type: string } {
    return { queue: this.#tags.queue.of(queue), type: this.#tags.type.of(type) }
  }

  #error(failure: StoredFailure | null): Attributes {
    return failure === null ? {} : { 'error.type': this.#tags.error.of(failure.code ?? failure.name) }
  }
}
