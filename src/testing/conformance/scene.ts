/**
 * One fresh storage with what a case does to it, in the words of the design. Steps that only prepare a case assert that
 * they worked, so that a case fails where it goes wrong and not later.
 */
import { ChokaQError } from '../../core/errors.ts'
import type { CounterName } from '../../core/counters.ts'
import type { Actor, Inspector, MarkerRow, ResurrectRequest, ResurrectVerdict } from '../../core/inspector.ts'
import type { FetchedJob, JobRecord, NewJob, Pillar } from '../../core/job.ts'
import type { Lease } from '../../core/lease.ts'
import type { Place } from '../../core/lifecycle.ts'
import type {
  EnqueueVerdict,
  SettleAction,
  SettleVerdict,
  StartVerdict,
  StorageDriver,
  TypePolicy,
  WorkerInfo,
} from '../../core/storage.ts'
import type { FakeRuntime } from '../fake-runtime.ts'
import type { ConformanceSubject, Expect, PlantedMarker } from './harness.ts'
import { keyedJob, keyedPolicy, newJob, policy } from './new-job.ts'

export interface FetchOptions {
  readonly workerId?: string
  readonly queue?: string
  readonly limit?: number
  readonly driver?: StorageDriver
}

export const operator: Actor = { actor: 'ada', note: 'asked for by the customer' }
export const plain = policy()
export const keyed = keyedPolicy()

export class Scene {
  readonly driver: StorageDriver
  readonly runtime: FakeRuntime
  readonly expect: Expect
  readonly #subject: ConformanceSubject

  constructor(subject: ConformanceSubject, runtime: FakeRuntime, expect: Expect) {
    this.driver = subject.driver
    this.runtime = runtime
    this.expect = expect
    this.#subject = subject
  }

  get inspector(): Inspector {
    return this.driver.inspector
  }

  /** Another connection to the same data; the same one where the storage has no other. */
  async second(): Promise<StorageDriver> {
    return this.#subject.second === undefined ? this.driver : this.#subject.second()
  }

  async elapse(ms: number): Promise<void> {
    if (this.#subject.elapse === undefined) await this.runtime.advance(ms)
    else await this.#subject.elapse(ms)
  }

  /** What the storage's clock says. */
  async nowMs(): Promise<number> {
    return this.#subject.nowMs === undefined ? this.runtime.clock.nowMs() : this.#subject.nowMs()
  }

  /** All at once, with time moving where one has to wait for another. */
  async together<T>(...calls: readonly Promise<T>[]): Promise<T[]> {
    return this.runtime.complete(Promise.all(calls))
  }

  plantMarker(keyHash: string, marker: Partial<PlantedMarker> = {}): Promise<void> {
    return this.#subject.plantMarker({
      keyHash,
      state: 'completed',
      jobId: this.runtime.newId(),
      generation: 1,
      fingerprint: null,
      result: null,
      failure: null,
      expiresAtMs: undefined,
      ...marker,
    })
  }

  // ---- enqueue

  /** Enqueues one row and returns its verdict. */
  async send(job: NewJob): Promise<EnqueueVerdict> {
    const [verdict] = await this.driver.enqueue([job])
    return present(verdict, 'a verdict of enqueue')
  }

  /** Enqueues rows that must all be new. */
  async insert(...jobs: NewJob[]): Promise<void> {
    const verdicts = await this.driver.enqueue(jobs)
    this.expect(verdicts).toEqual(jobs.map(() => ({ kind: 'inserted' })))
  }

  async add(overrides: Partial<NewJob> = {}): Promise<NewJob> {
    const job = newJob(this.runtime, overrides)
    await this.insert(job)
    return job
  }

  async addKeyed(key: string, overrides: Partial<NewJob> & { says?: unknown } = {}): Promise<NewJob> {
    const job = keyedJob(this.runtime, key, overrides)
    await this.insert(job)
    return job
  }

  // ---- fetch and start

  async worker(id = 'worker-1', overrides: Partial<WorkerInfo> = {}): Promise<string> {
    const identity = { ...this.runtime.processes.self(), startTime: id }
    const defaults = { name: id, identity, queues: ['default'], types: [], concurrency: 10 }
    await this.driver.registerWorker({ ...defaults, ...overrides, id })
    return id
  }

  fetch(policies: readonly TypePolicy[], options: FetchOptions = {}): Promise<readonly FetchedJob[]> {
    const { workerId = 'worker-1', queue = 'default', limit = 100, driver = this.driver } = options
    return driver.fetch({ workerId, queue, limit, policies })
  }

  async fetchOne(of: TypePolicy, options: FetchOptions = {}): Promise<FetchedJob> {
    const jobs = await this.fetch([of], options)
    this.expect(jobs, 'exactly one job is ready').toHaveLength(1)
    return present(jobs[0], 'a fetched job')
  }

  async start(lease: Lease, of: TypePolicy): Promise<StartVerdict> {
    const [verdict] = await this.driver.start([{ lease, policy: of }])
    return present(verdict, 'a verdict of start')
  }

  async mustStart(lease: Lease, of: TypePolicy): Promise<void> {
    this.expect((await this.start(lease, of)).kind).toBe('started')
  }

  /** A job without a key in `fetched`. Nothing else may be ready. */
  async fetched(of = plain, overrides: Partial<NewJob> = {}, options: FetchOptions = {}): Promise<FetchedJob> {
    await this.add({ type: of.type, ...overrides })
    const job = await this.fetchOne(of, options)
    this.expect(job.state).toBe('fetched')
    return job
  }

  /** A job without a key that runs, started through the gate. */
  async running(of = plain, overrides: Partial<NewJob> = {}, options: FetchOptions = {}): Promise<FetchedJob> {
    const job = await this.fetched(of, overrides, options)
    await this.mustStart(job.lease, of)
    return job
  }

  /** A keyed job that runs, started through the gate. */
  async runningKeyed(
    key: string,
    of = keyed,
    overrides: Partial<NewJob> & { says?: unknown } = {},
  ): Promise<FetchedJob> {
    await this.addKeyed(key, { type: of.type, ...overrides })
    const job = await this.fetchOne(of)
    await this.mustStart(job.lease, of)
    return job
  }

  /** Disowns what the worker does not know and fetched longer ago than this, as its heart does after a beat. */
  async disown(olderThanMs: number, inHand: readonly Lease[] = [], workerId = 'worker-1'): Promise<number> {
    const beat = await this.driver.heartbeat({ workerId, concurrency: 10, runningCount: 0, bufferedCount: 0 })
    const atMs = beat.kind === 'alive' ? beat.atMs : 0
    return this.driver.disown({ workerId, inHand, fetchedBeforeMs: atMs - olderThanMs })
  }

  // ---- settle

  async settle(lease: Lease, action: SettleAction): Promise<SettleVerdict> {
    const [verdict] = await this.driver.settle([{ lease, action }])
    return present(verdict, 'a verdict of settle')
  }

  /** Settles; it must be the first time, with this outcome. */
  async mustSettle(lease: Lease, action: SettleAction, outcome: string): Promise<void> {
    this.expect(await this.settle(lease, action)).toEqual({ kind: 'settled', outcome, repeated: false })
  }

  // ---- what is stored

  async find(jobId: string): Promise<JobRecord | undefined> {
    return this.inspector.get(jobId)
  }

  async record(jobId: string): Promise<JobRecord> {
    return present(await this.inspector.get(jobId), `job ${jobId}`)
  }

  /** Where the job is, as lifecycle.ts names it. */
  async place(jobId: string): Promise<Place> {
    return placeOf(await this.inspector.get(jobId))
  }

  async marker(keyHash: string): Promise<MarkerRow | undefined> {
    return this.inspector.marker(keyHash)
  }

  /** The sum of a counter over queues and types, of one label where it is given. */
  async counter(name: CounterName, label?: string): Promise<number> {
    const rows = await this.inspector.stats()
    return rows
      .filter((row) => row.name === name && (label === undefined || row.label === label))
      .reduce((sum, row) => sum + row.value, 0)
  }

  /** Every job of a pillar, page by page. */
  async all(pillar: Pillar): Promise<readonly JobRecord[]> {
    const jobs: JobRecord[] = []
    let cursor: string | undefined
    do {
      const page = await this.inspector.list({ pillar, filter: {}, limit: 100, cursor })
      jobs.push(...page.jobs)
      cursor = page.nextCursor
    } while (cursor !== undefined)
    return jobs
  }

  // ---- operators

  async resurrect(
    jobId: string,
    request: Partial<ResurrectRequest> = {},
    continueWithinMs?: number,
  ): Promise<ResurrectVerdict> {
    const nothing = { payload: undefined, key: undefined, revision: undefined, absence: undefined }
    const defaults = { mode: 'continue', ...nothing } as const
    return this.inspector.resurrect({ ...defaults, ...request, jobId }, operator, continueWithinMs)
  }
}

export function placeOf(record: JobRecord | undefined): Place {
  if (record === undefined) return 'nowhere'
  if (record.pillar !== 'hot') return record.pillar
  return record.state as Place
}

export function present<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new ChokaQError('CHOKAQ_ASSERTION', { what: `${what} is missing` })
  return value
}

/** The error code a call was refused with; 'accepted' where it was not, and the text of what is no ChokaQ error. */
export async function refusal(call: Promise<unknown>): Promise<string> {
  try {
    await call
    return 'accepted'
  } catch (error) {
    return error instanceof ChokaQError ? (error as ChokaQError).code : `not a ChokaQ error: ${String(error)}`
  }
}
