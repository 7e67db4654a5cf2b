/** What an operator may ask and do: thin, audited, the same for CLI, Deck and code. */
import type { ClientConfig } from '../core/config.ts'
import { contractOf, type Job } from '../core/contract.ts'
import { ChokaQError } from '../core/errors.ts'
import {
  maxObservedCalls,
  type Actor,
  type AuditRow,
  type CancelVerdict,
  type JobFilter,
  type JobPage,
  type ObservedEffect,
  type QueueRow,
  type ResurrectRequest,
  type ResurrectVerdict,
  type SchemaState,
  type Upkeep,
  type WorkerRow,
} from '../core/inspector.ts'
import type { CounterRow } from '../core/counters.ts'
import type { JobRecord, Pillar } from '../core/job.ts'
import { toJsonText } from '../core/json-image.ts'
import { countAnswered, listAnswered, typeAnswers, type TypeAnswers } from '../core/type-answers.ts'
import type { MetricQuery, MetricSeries } from '../core/metrics.ts'
import { keyedFields, payloadText, readPayload } from '../core/preparation.ts'
import type { Runtime } from '../core/runtime.ts'
import type { JobTypeRow, StorageDriver } from '../core/storage.ts'

export interface ListOptions extends JobFilter {
  /** 1 to 500; defaults to 50. */
  readonly limit?: number
  readonly cursor?: string
}

export interface ResurrectOptions {
  /** `continue` finishes the same operation; `new-operation` starts another one under the same key. */
  readonly mode: 'continue' | 'new-operation'
  /** Replaces the payload. Give `job` too where the type is keyed, so that its key can be computed. */
  readonly payload?: unknown
  readonly job?: Job
  /** Refuses where somebody acted on the row since you read it. */
  readonly revision?: number
  /** For a new operation of a job in doubt: where you looked, and that it did not happen. Stands in the audit log. */
  readonly absence?: string
}

/** What `resurrect` answers; a doubt that stands in the way of a new operation is thrown. */
export type ResurrectAnswer = Exclude<ResurrectVerdict, { readonly kind: 'not-absent' }>

const defaultLimit = 50
const purgeBatch = 1_000

interface Parts {
  readonly driver: StorageDriver
  readonly runtime: Runtime
  readonly config: ClientConfig
}

export class Jobs {
  readonly #parts: Parts
  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** The job, wherever it is; undefined where nobody knows it (any more). */
  get(id: string): Promise<JobRecord | undefined> {
    return this.#parts.driver.inspector.get(id)
  }

  /** Newest first. */
  list(pillar: Pillar, options: ListOptions = {}): Promise<JobPage> {
    const { limit, cursor, ...filter } = options
    return this.#parts.driver.inspector.list({ pillar, filter, limit: limit ?? defaultLimit, cursor })
  }

  /** A waiting job is cancelled at once; a running one is asked to stop. */
  cancel(id: string, by: Actor): Promise<CancelVerdict> {
    return this.#parts.driver.inspector.cancel(id, by)
  }

  /** Starts a scheduled job now: true; false where it is not scheduled. */
  retryNow(id: string, by: Actor): Promise<boolean> {
    return this.#parts.driver.inspector.retryNow(id, by)
  }
}

export class DeadLetters {
  readonly #parts: Parts
  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Newest first. */
  list(options: ListOptions = {}): Promise<JobPage> {
    const { limit, cursor, ...filter } = options
    return this.#parts.driver.inspector.list({ pillar: 'dlq', filter, limit: limit ?? defaultLimit, cursor })
  }

  /**
   * @throws CHOKAQ_CONTRACT_INVALID where a keyed type's payload is edited without its contract, CHOKAQ_ABSENCE_UNPROVEN
   * where a new operation could act beside what happened already
   */
  async resurrect(id: string, options: ResurrectOptions, by: Actor): Promise<ResurrectAnswer> {
    const { inspector } = this.#parts.driver
    const { mode, revision } = options
    const record = await inspector.get(id)
    if (record === undefined) return { kind: 'not-found' }
    const edit =
      options.payload === undefined ? { payload: undefined, key: undefined } : await this.#edit(record, options)
    const limitMs = mode === 'continue' ? await this.#continueWithinMs(record) : undefined
    const absence = await this.#absence(record, options)
    const verdict = await inspector.resurrect({ jobId: id, mode, revision, absence, ...edit }, by, limitMs)
    if (verdict.kind !== 'not-absent') return verdict
    const { effects, waitMs } = verdict
    throw new ChokaQError('CHOKAQ_ABSENCE_UNPROVEN', { id, effects, waitMs })
  }

  /** Undefined where nothing was stated. */
  async #absence({ type }: JobRecord, { mode, absence }: ResurrectOptions): Promise<ResurrectRequest['absence']> {
    if (absence === undefined) return undefined
    if (typeof absence !== 'string' || absence.trim() === '' || mode === 'continue') {
      throw new ChokaQError('CHOKAQ_OPTION_INVALID', {
        option: 'absence',
        value: typeof absence === 'string' ? JSON.stringify(absence) : String(absence),
        expected: 'a text that says where you looked, for a new operation',
      })
    }
    const effects = listAnswered(await this.#answers(type), 'effects')
    const waits = effects.map((effect) => countAnswered(effect['settleAfterMs']) ?? 0)
    return { statement: absence.trim(), settleAfterMs: Math.max(0, ...waits) }
  }

  /** What the worker that registered the type told of it last. */
  async #answers(type: string): Promise<TypeAnswers> {
    return typeAnswers((await this.#parts.driver.inspector.jobTypes()).find((each) => each.type === type))
  }

  async #edit(
    record: JobRecord,
    { payload, job }: ResurrectOptions,
  ): Promise<{ readonly payload: string; readonly key: ResurrectRequest['key'] }> {
    const { runtime, config } = this.#parts
    const refuse = (problem: string): never => {
      throw new ChokaQError('CHOKAQ_CONTRACT_INVALID', { type: record.type, problem })
    }
    if (job === undefined) {
      if (record.keyHash !== null) {
        refuse('it is keyed, so an edited payload needs the contract to compute its key. Pass { job }.')
      }
      const limits = { maxBytes: config.maxPayloadBytes, byteLength: (text: string) => runtime.byteLength(text) }
      return { payload: toJsonText(payload, `The payload of "${record.type}"`, limits), key: undefined }
    }
    const contract = contractOf(job)
    if (contract.type !== record.type) refuse(`the job is of this type and the contract given is "${contract.type}".`)
    const text = payloadText(contract, payload, config.maxPayloadBytes, runtime)
    const read = await readPayload(contract, text)
    const of = { id: record.id, tenant: record.tenant ?? undefined }
    const { key, fingerprint } = keyedFields(contract, read, of, runtime)
    return {
      payload: text,
      key: key === undefined || fingerprint === undefined ? undefined : { key, fingerprint },
    }
  }

  /** As the worker that registered the type last computed it; without a key no marker could have come and gone. */
  async #continueWithinMs({ type, keyHash }: JobRecord): Promise<number | undefined> {
    if (keyHash === null) return undefined
    return countAnswered((await this.#answers(type))['continueWithinMs']) ?? undefined
  }

  /** Deletes dead jobs for good; those in doubt stay. Give ids or a filter. */
  async purge(what: { readonly ids: readonly string[] } | { readonly filter: JobFilter }, by: Actor): Promise<number> {
    const inspector = this.#parts.driver.inspector
    if ('ids' in what) return inspector.purge({ jobIds: what.ids, limit: what.ids.length }, by)
    let total = 0
    for (;;) {
      const count = await inspector.purge({ filter: what.filter, limit: purgeBatch }, by)
      total += count
      if (count < purgeBatch) return total
    }
  }
}

export class Queues {
  readonly #parts: Parts
  constructor(parts: Parts) {
    this.#parts = parts
  }

  list(): Promise<readonly QueueRow[]> {
    return this.#parts.driver.inspector.queues()
  }

  /** Nothing of the queue is fetched or started until it is resumed; what runs goes on. */
  pause(name: string, by: Actor): Promise<void> {
    return this.#parts.driver.inspector.setQueue({ name, paused: true }, by)
  }

  resume(name: string, by: Actor): Promise<void> {
    return this.#parts.driver.inspector.setQueue({ name, paused: false }, by)
  }

  /** Jobs of the queue owned at once by all workers together; null lifts the limit. */
  limit(name: string, maxConcurrency: number | null, by: Actor): Promise<void> {
    if (
      maxConcurrency !== null &&
      (!Number.isInteger(maxConcurrency) || maxConcurrency < 1 || maxConcurrency > 1_000_000)
    ) {
      throw new ChokaQError('CHOKAQ_OPTION_INVALID', {
        option: 'maxConcurrency',
        value: String(maxConcurrency),
        expected: 'a whole number from 1 to 1000000, or null',
      })
    }
    return this.#parts.driver.inspector.setQueue({ name, maxConcurrency }, by)
  }

  /** How long this queue keeps finished and dead jobs, milliseconds; null returns to the workers' default. */
  retain(
    name: string,
    keep: { readonly archiveRetentionMs?: number | null; readonly dlqRetentionMs?: number | null },
    by: Actor,
  ): Promise<void> {
    return this.#parts.driver.inspector.setQueue({ name, ...keep }, by)
  }
}

export class Insight {
  readonly #parts: Parts
  constructor(parts: Parts) {
    this.#parts = parts
  }

  workers(): Promise<readonly WorkerRow[]> {
    return this.#parts.driver.inspector.workers()
  }

  /** The answers of each type, as workers registered them. */
  jobTypes(): Promise<readonly JobTypeRow[]> {
    return this.#parts.driver.inspector.jobTypes()
  }

  /** Cluster totals since the database was made. */
  stats(): Promise<readonly CounterRow[]> {
    return this.#parts.driver.inspector.stats()
  }

  /** What happened when, in points of ten seconds or more, for up to 30 days. Cheap: it reads no history. */
  metrics(query: MetricQuery): Promise<MetricSeries> {
    return this.#parts.driver.inspector.metrics(query)
  }

  /** The database's clock, and what it has to clean up. */
  upkeep(): Promise<Upkeep> {
    return this.#parts.driver.inspector.upkeep()
  }

  /** How the newest 2,000 calls of effects ended, and those in doubt (up to as many), by type and effect. */
  observedEffects(): Promise<readonly ObservedEffect[]> {
    return this.#parts.driver.inspector.observedEffects(maxObservedCalls)
  }

  /** Which migrations the database has, and which this version knows. */
  schema(): Promise<SchemaState> {
    return this.#parts.driver.inspector.schema()
  }

  /** Newest first; pass the last id to go on. */
  audit(options: { readonly limit?: number; readonly beforeId?: number } = {}): Promise<readonly AuditRow[]> {
    return this.#parts.driver.inspector.audit({ limit: options.limit ?? defaultLimit, beforeId: options.beforeId })
  }
}
