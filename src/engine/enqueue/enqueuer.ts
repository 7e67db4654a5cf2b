/**
 * The producer's stage: validate → key → insert. A call whose reply is missing is repeated with the same id until its
 * deadline, so a producer sees one of three things: an answer, an error that says nothing was written, or
 * CHOKAQ_ENQUEUE_UNKNOWN with the id that makes repeating safe.
 */
import type { ClientConfig } from '../../core/config.ts'
import { contractOf, type Job } from '../../core/contract.ts'
import { ChokaQError, hasCode, isTransient } from '../../core/errors.ts'
import { type EventBus } from '../../core/events.ts'
import { describeFailure } from '../../core/failure.ts'
import type { NewJob } from '../../core/job.ts'
import type { Runtime } from '../../core/runtime.ts'
import type { EnqueueVerdict, StorageDriver } from '../../core/storage.ts'
import type { Tracing } from '../../core/tracing.ts'
import { Batcher } from '../batcher.ts'
import { pause, withDeadline } from '../deadline.ts'
import { answerFor, type EnqueueResult } from './answer.ts'
import { resolveEnqueueOptions, type EnqueueOptions } from './enqueue-options.ts'
import { prepareJob, prepareJobSync, type Lineage, type PreparedJob } from './prepare-job.ts'
import { sent, sentSync } from './sent-jobs.ts'

const maxRowsPerStatement = 1_000
const firstRetryDelayMs = 50
const maxRetryDelayMs = 1_000

export interface EnqueuerParts {
  readonly driver: StorageDriver
  readonly runtime: Runtime
  readonly config: ClientConfig
  readonly events: EventBus
  readonly tracing: Tracing
}

export type BatchAnswer<R> = EnqueueResult<R> | { readonly outcome: 'refused'; readonly error: Error }

interface Submitted {
  readonly row: NewJob
  readonly sinceMs: number
}

/**
 * Calls made together are prepared in step, so they have all arrived one microtask after the first. Waiting for the end
 * of the tick instead cost a tenth of a single enqueue, spent idle.
 */
const afterMicrotasks = { defer: (task: () => void) => void Promise.resolve().then(task) }

export class Enqueuer {
  readonly #parts: EnqueuerParts
  readonly #batcher: Batcher<Submitted, EnqueueVerdict>

  constructor(parts: EnqueuerParts) {
    this.#parts = parts
    this.#batcher = new Batcher({
      scheduler: afterMicrotasks,
      maxBatchCount: maxRowsPerStatement,
      // The deadline of a batch is that of its oldest row: no caller waits longer than it was told.
      run: (batch) =>
        this.#insert(
          batch.map(({ row }) => row),
          batch[0]?.sinceMs ?? 0,
        ),
    })
  }

  async enqueue<R>(job: Job, payload: unknown, options: EnqueueOptions, lineage?: Lineage): Promise<EnqueueResult<R>> {
    const contract = contractOf(job)
    const prepared = await this.#prepared(job, payload, options, lineage)
    const sinceMs = this.#parts.runtime.clock.monotonicMs()
    const submitted = ([row = prepared.row]: readonly NewJob[]) => this.#submit({ row, sinceMs })
    const verdict = await sent(this.#parts.tracing, [prepared.row], submitted).catch((error: unknown) => {
      throw withOwnId(error, prepared.row.id)
    })
    this.#report(prepared.row, verdict)
    return answerFor<R>(contract, prepared, verdict)
  }

  /** In the caller's own asynchronous transaction: no repeat, no batch with strangers; it shares that one's fate. */
  async enqueueIn<R>(tx: unknown, job: Job, payload: unknown, options: EnqueueOptions): Promise<EnqueueResult<R>> {
    const prepared = await this.#prepared(job, payload, options)
    const { driver, tracing } = this.#parts
    const [verdict] = await sent(tracing, [prepared.row], (rows) => driver.enqueueIn(tx, rows))
    return answerFor<R>(contractOf(job), prepared, one(verdict))
  }

  /** In the caller's own synchronous transaction. */
  enqueueSync<R>(
    tx: unknown,
    job: Job,
    payload: unknown,
    options: EnqueueOptions,
    lineage?: Lineage,
  ): EnqueueResult<R> {
    const { config, runtime, driver, tracing } = this.#parts
    const contract = contractOf(job)
    const prepared = prepareJobSync(contract, payload, options, config, runtime, lineage)
    const [verdict] = sentSync(tracing, prepared.row, (row) => driver.enqueueSync(tx, [row]))
    return answerFor<R>(contract, prepared, one(verdict))
  }

  /**
   * One answer per payload, in order; a payload that is refused costs its neighbours nothing. Rows whose fate is unknown
   * answer `refused` with CHOKAQ_ENQUEUE_UNKNOWN and their own id, so that each can be repeated.
   */
  async enqueueMany<R>(
    job: Job,
    payloads: readonly unknown[],
    options: EnqueueOptions,
  ): Promise<readonly BatchAnswer<R>[]> {
    const { config } = this.#parts
    if (payloads.length > config.maxBatchCount) {
      throw new ChokaQError('CHOKAQ_OPTION_INVALID', {
        option: 'payloads',
        value: `${payloads.length} long`,
        expected: `at most ${config.maxBatchCount} payloads a call (maxBatchCount)`,
      })
    }
    if (options.id !== undefined) {
      throw new ChokaQError('CHOKAQ_OPTION_INVALID', {
        option: 'id',
        value: options.id,
        expected: 'no id: enqueueMany makes one per payload',
      })
    }
    // What is wrong with the options is wrong with every row: it is thrown, not answered a thousand times.
    resolveEnqueueOptions(options, config.maxDelayMs, this.#parts.runtime.clock.nowMs())
    const answers: BatchAnswer<R>[] = []
    for (let from = 0; from < payloads.length; from += maxRowsPerStatement) {
      const chunk = payloads.slice(from, from + maxRowsPerStatement)
      answers.push(...(await this.#enqueueChunk<R>(job, chunk, options, from > 0)))
    }
    return answers
  }

  async #enqueueChunk<R>(
    job: Job,
    payloads: readonly unknown[],
    options: EnqueueOptions,
    isLater: boolean,
  ): Promise<BatchAnswer<R>[]> {
    const contract = contractOf(job)
    const prepared = await Promise.all(
      payloads.map(async (payload) => {
        try {
          return await this.#prepared(job, payload, options)
        } catch (error) {
          return asError(error)
        }
      }),
    )
    const rows = prepared.filter((p): p is PreparedJob => !(p instanceof Error))
    const verdicts = rows.length === 0 ? [] : await this.#insertChunk(rows, isLater)
    let next = 0
    return prepared.map((p): BatchAnswer<R> => {
      if (p instanceof Error) return { outcome: 'refused', error: p }
      const verdict = one(verdicts[next])
      next += 1
      this.#report(p.row, verdict)
      try {
        return answerFor<R>(contract, p, verdict)
      } catch (error) {
        return { outcome: 'refused', error: asError(error) }
      }
    })
  }

  /** An error may only be thrown while nothing of the call is known to be written. */
  async #insertChunk(prepared: readonly PreparedJob[], isLater: boolean): Promise<readonly EnqueueVerdict[]> {
    const rows = prepared.map(({ row }) => row)
    try {
      const sinceMs = this.#parts.runtime.clock.monotonicMs()
      return await sent(this.#parts.tracing, rows, (traced) => this.#insert(traced, sinceMs))
    } catch (error) {
      if (!isLater && !hasCode(error, 'CHOKAQ_ENQUEUE_UNKNOWN')) throw error
      return rows.map(({ id }) => ({ kind: 'refused', error: asError(withOwnId(error, id)) }))
    }
  }

  async #prepared(job: Job, payload: unknown, options: EnqueueOptions, lineage?: Lineage): Promise<PreparedJob> {
    const { config, runtime, driver } = this.#parts
    const contract = contractOf(job)
    try {
      return await prepareJob(contract, payload, options, config, runtime, lineage)
    } catch (error) {
      if (hasCode(error, 'CHOKAQ_EMPTY_KEY')) {
        const queue = options.queue ?? contract.queue
        this.#parts.events.emit({
          name: 'idempotency.claim',
          outcome: 'empty_key',
          jobId: '',
          type: contract.type,
          queue,
        })
        // The refusal is the answer; a storage that cannot count it just now must not replace it.
        const row = { name: 'idempotency.claims', queue, type: contract.type, label: 'empty_key', value: 1 } as const
        const counted = driver.count([row])
        await withDeadline(runtime.scheduler, config.enqueueDeadlineMs, 'count', counted).catch(() => undefined)
      }
      throw error
    }
  }

  /**
   * In one statement with whoever enqueues at this moment. A row whose key somebody's open transaction holds was refused
   * without costing the others their answers; it goes on alone, until the key is free or its own deadline has come.
   */
  async #submit(pending: { readonly row: NewJob; readonly sinceMs: number }): Promise<EnqueueVerdict> {
    const { runtime, config } = this.#parts
    let verdict = await this.#batcher.submit(pending)
    for (let delayMs = firstRetryDelayMs; isBusy(verdict); delayMs = Math.min(maxRetryDelayMs, 2 * delayMs)) {
      const waitedMs = runtime.clock.monotonicMs() - pending.sinceMs
      if (waitedMs + delayMs >= config.enqueueDeadlineMs) return verdict
      await pause(runtime.scheduler, delayMs)
      verdict = one((await this.#insert([pending.row], pending.sinceMs))[0])
    }
    return verdict
  }

  /** Inserts with repeats until the deadline. After the first ambiguous failure every row may exist. */
  async #insert(rows: readonly NewJob[], sinceMs: number): Promise<readonly EnqueueVerdict[]> {
    const { driver, runtime, config, events } = this.#parts
    let pending = rows
    let ambiguous = false
    let delayMs = firstRetryDelayMs
    for (;;) {
      const leftMs = config.enqueueDeadlineMs - (runtime.clock.monotonicMs() - sinceMs)
      // It waited that long behind another batch and was never sent.
      if (leftMs <= 0) throw new ChokaQError('CHOKAQ_STORAGE_BUSY', { waitedMs: config.enqueueDeadlineMs })
      try {
        return await withDeadline(runtime.scheduler, leftMs, 'enqueue', driver.enqueue(pending))
      } catch (error) {
        if (!isTransient(error)) throw error
        events.emit({ name: 'storage.failed', during: 'enqueue', failure: describeFailure(error) })
        if (hasCode(error, 'CHOKAQ_STORAGE_FAILED') && !ambiguous) {
          ambiguous = true
          pending = rows.map((row) => ({ ...row, mayExist: true }))
        }
        const waitedMs = runtime.clock.monotonicMs() - sinceMs
        if (waitedMs + delayMs >= config.enqueueDeadlineMs) {
          if (!ambiguous) throw error
          const details = { id: rows[0]?.id ?? '', waitedMs: Math.round(waitedMs) }
          throw new ChokaQError('CHOKAQ_ENQUEUE_UNKNOWN', details, { cause: error })
        }
        await pause(runtime.scheduler, delayMs)
        delayMs = Math.min(maxRetryDelayMs, 2 * delayMs)
      }
    }
  }

  #report(row: NewJob, verdict: EnqueueVerdict): void {
    const { events } = this.#parts
    if (!events.active) return
    const of = { jobId: row.id, type: row.type, queue: row.queue }
    if (verdict.kind === 'inserted') events.emit({ name: 'job.enqueued', ...of })
    else if ('jobId' in verdict) {
      events.emit({ name: 'job.deduplicated', ...of, answer: verdict.kind, holderId: verdict.jobId })
    }
  }
}

function one(verdict: EnqueueVerdict | undefined): EnqueueVerdict {
  if (verdict === undefined) throw new ChokaQError('CHOKAQ_ASSERTION', { what: 'an enqueued row got no verdict' })
  return verdict
}

/** Nothing was written, and nothing speaks against the row itself. */
function isBusy(verdict: EnqueueVerdict): boolean {
  return verdict.kind === 'refused' && hasCode(verdict.error, 'CHOKAQ_STORAGE_BUSY')
}

/** The error of a batch names one of its rows; each caller needs the id of its own. */
function withOwnId(error: unknown, id: string): unknown {
  if (!hasCode(error, 'CHOKAQ_ENQUEUE_UNKNOWN')) return error
  return new ChokaQError('CHOKAQ_ENQUEUE_UNKNOWN', { ...error.details, id }, { cause: error.cause })
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new ChokaQError('CHOKAQ_STORAGE_FAILED', { problem: String(thrown) })
}
