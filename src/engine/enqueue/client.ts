/** The client: what a producer holds. It costs nothing until its first call. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { resolveClientConfig, type ClientConfig, type ClientOptions } from '../../core/config.ts'
import type { Job, PayloadIn } from '../../core/contract.ts'
import type { SqliteLike, TxArg } from '../../core/tx.ts'
import { ChokaQError } from '../../core/errors.ts'
import { EventBus, type EventListener } from '../../core/events.ts'
import type { Runtime } from '../../core/runtime.ts'
import type { Storage, StorageDriver } from '../../core/storage.ts'
import { Tracing } from '../../core/tracing.ts'
import { createNodeRuntime } from '../node-runtime.ts'
import { withDeadline } from '../deadline.ts'
import { storageHealth, type Health, type HealthOptions } from '../health.ts'
import { DeadLetters, Insight, Jobs, Queues } from '../operators.ts'
import { Reviews } from '../reviews.ts'
import { partsSymbol, type ChokaQParts } from '../parts.ts'
import type { EnqueueResult } from './answer.ts'
import { Enqueuer, type BatchAnswer } from './enqueuer.ts'
import type { EnqueueOptions } from './enqueue-options.ts'

export interface CreateOptions extends ClientOptions {
  /** Where jobs live: `sqlite('./jobs.db')`. */
  storage: Storage
  /** Hears every event of this client and the workers made from it. */
  onEvent?: EventListener
  /** Clock, timers, randomness and ids; for tests. Defaults to Node's. */
  runtime?: Runtime
}

export interface ChokaQ {
  /**
   * Stores one job; it is accepted when the promise resolves: the row is committed and flushed.
   *
   * @throws CHOKAQ_PAYLOAD_INVALID, CHOKAQ_NOT_JSON, CHOKAQ_TOO_LARGE, CHOKAQ_EMPTY_KEY, CHOKAQ_KEY_REUSED,
   * CHOKAQ_ID_REUSED, CHOKAQ_OPTION_INVALID: nothing was written. CHOKAQ_ENQUEUE_UNKNOWN: repeat with its id.
   */
  enqueue<S extends StandardSchemaV1, R>(
    job: Job<S, R>,
    payload: PayloadIn<S>,
    options?: EnqueueOptions & { tx?: TxArg },
  ): Promise<EnqueueResult<R>>
  /** Stores many jobs of one type; one answer per payload, in order. At most `maxBatchCount` (10,000). */
  enqueueMany<S extends StandardSchemaV1, R>(
    job: Job<S, R>,
    payloads: readonly PayloadIn<S>[],
    options?: EnqueueOptions,
  ): Promise<readonly BatchAnswer<R>[]>
  /** Stores one job inside your own synchronous transaction: it exists if and only if your rows do. */
  enqueueSync<S extends StandardSchemaV1, R>(
    job: Job<S, R>,
    payload: PayloadIn<S>,
    options: EnqueueOptions & { tx: SqliteLike },
  ): EnqueueResult<R>
  readonly jobs: Jobs
  readonly dlq: DeadLetters
  readonly queues: Queues
  readonly insight: Insight
  /** Jobs that wait for a person, and the decisions that end the wait. */
  readonly reviews: Reviews
  /** Whether the storage answers and no queue lags. Rejects for wrong options only. */
  health(options?: HealthOptions): Promise<Health>
  /** Hears every event; returns how to stop hearing. */
  subscribe(listener: EventListener): () => void
  /** Connects and migrates now instead of at the first call. */
  ready(): Promise<void>
  close(): Promise<void>
}

/**
 * Makes a client. Nothing is opened and no timer runs before its first call.
 *
 * @example
 * const chokaq = createChokaQ({ storage: sqlite('./jobs.db') })
 * await chokaq.enqueue(resizeImage, { id: 'p1' })
 * await chokaq.close()
 */
export function createChokaQ(options: CreateOptions): ChokaQ {
  const config = resolveClientConfig(options, ['storage', 'onEvent', 'runtime'])
  // JavaScript callers may leave it out; the type says it is there.
  const storage = options.storage as Storage | undefined
  if (typeof storage?.open !== 'function') {
    throw new ChokaQError('CHOKAQ_CONFIG_INVALID', {
      problem: "storage is missing. Give createChokaQ({ storage: sqlite('./chokaq.db') }).",
    })
  }
  return new Client(storage, config, options.runtime ?? createNodeRuntime(), options.onEvent)
}

class Client implements ChokaQ {
  readonly jobs: Jobs
  readonly dlq: DeadLetters
  readonly queues: Queues
  readonly insight: Insight
  readonly reviews: Reviews
  readonly #driver: StorageDriver
  readonly #enqueuer: Enqueuer
  readonly #events = new EventBus()
  readonly [partsSymbol]: ChokaQParts

  constructor(storage: Storage, config: ClientConfig, runtime: Runtime, onEvent: EventListener | undefined) {
    this.#driver = storage.open(runtime)
    if (onEvent !== undefined) this.#events.subscribe(onEvent)
    const parts = { driver: this.#driver, runtime, config, events: this.#events, tracing: new Tracing() }
    this.#enqueuer = new Enqueuer(parts)
    this.jobs = new Jobs(parts)
    this.dlq = new DeadLetters(parts)
    this.queues = new Queues(parts)
    this.insight = new Insight(parts)
    this.reviews = new Reviews(parts)
    this[partsSymbol] = { ...parts, location: storage.location }
  }

  enqueue<S extends StandardSchemaV1, R>(
    job: Job<S, R>,
    payload: PayloadIn<S>,
    options: EnqueueOptions & { tx?: TxArg } = {},
  ): Promise<EnqueueResult<R>> {
    const { tx, ...rest } = options
    return tx === undefined
      ? this.#enqueuer.enqueue<R>(job, payload, rest)
      : this.#enqueuer.enqueueIn<R>(tx, job, payload, rest)
  }

  enqueueMany<S extends StandardSchemaV1, R>(
    job: Job<S, R>,
    payloads: readonly PayloadIn<S>[],
    options: EnqueueOptions = {},
  ): Promise<readonly BatchAnswer<R>[]> {
    return this.#enqueuer.enqueueMany<R>(job, payloads, options)
  }

  enqueueSync<S extends StandardSchemaV1, R>(
    job: Job<S, R>,
    payload: PayloadIn<S>,
    options: EnqueueOptions & { tx: SqliteLike },
  ): EnqueueResult<R> {
    const { tx, ...rest } = options
    return this.#enqueuer.enqueueSync<R>(tx, job, payload, rest)
  }

  health(options: HealthOptions = {}): Promise<Health> {
    return storageHealth(this[partsSymbol], withDeadline, options)
  }

  subscribe(listener: EventListener): () => void {
    return this.#events.subscribe(listener)
  }

  ready(): Promise<void> {
    return this.#driver.ready()
  }

  close(): Promise<void> {
    return this.#driver.close()
  }
}
