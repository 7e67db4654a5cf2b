// One act with one cut in it: a storage behind a proxy that does the act, and one beside the proxy that prepares it and
// looks at what came of it.
import pg from 'pg'
import { expect, vi } from 'vitest'
import { EventBus } from '../../src/core/events.ts'
import type { FetchedJob, JobRecord, NewJob } from '../../src/core/job.ts'
import type { BeatVerdict, StorageDriver, TypePolicy } from '../../src/core/storage.ts'
import { createChokaQ, type ChokaQ } from '../../src/engine/enqueue/client.ts'
import { persist } from '../../src/engine/persist.ts'
import { postgres, type PostgresOptions } from 'chokaq/postgres'
import { newJob } from '../../src/testing/conformance/new-job.ts'
import type { TestDatabase } from './database.ts'
import { open, register, runtime } from './scene.ts'
import { type WireProxy, type Cut, type CutKind } from './wire-proxy.ts'

/**
 * Where one side hears nothing of the end, the deadline finds it: there it is short, so that it costs a test little.
 * Everywhere else a statement has the time that a busy machine needs.
 */
function optionsFor({ kind }: Cut): PostgresOptions {
  const isQuiet = kind === 'half-open' || kind === 'late'
  const statementDeadlineMs = isQuiet ? 400 : 5_000
  return { statementDeadlineMs, lockTimeoutMs: 50, poolSize: 2, handlerPoolSize: 1, listen: false }
}

const patienceMs = 10_000

export interface Act {
  readonly name: string
  /** Prepares with `stage.direct`, calls `stage.arm()`, acts, calls `stage.over()`, and looks. */
  run(stage: Stage): Promise<void>
}

let count = 0

export class Stage {
  readonly cut: Cut
  readonly direct: StorageDriver
  readonly database: TestDatabase
  readonly proxy: WireProxy
  readonly proxied: StorageDriver
  /** A queue of its own, so that nobody fetches a job of another act. */
  readonly queue: string
  readonly worker: string
  readonly #clients: ChokaQ[] = []

  constructor(parts: { cut: Cut; direct: StorageDriver; database: TestDatabase; proxy: WireProxy }) {
    count += 1
    this.cut = parts.cut
    this.direct = parts.direct
    this.database = parts.database
    this.proxy = parts.proxy
    this.queue = `q${count}`
    this.worker = `w${count}`
    this.proxied = open(this.proxy.url, optionsFor(this.cut))
  }

  arm(): void {
    this.proxy.arm(this.cut)
  }

  /** No more cuts; what was late arrives. */
  async over(): Promise<void> {
    this.proxy.disarm()
    await this.proxy.release()
  }

  /** Repeats a call as the engine does, until it is answered. */
  again<T>(call: () => Promise<T>): Promise<T> {
    const startMs = performance.now()
    const stop = (): boolean => performance.now() - startMs > patienceMs
    return persist({ scheduler: runtime.scheduler, events: new EventBus(), during: '', stop }, call)
  }

  /** Until what it expects holds. */
  async until(expectation: () => Promise<void>): Promise<void> {
    await vi.waitFor(expectation, { timeout: patienceMs, interval: 20 })
  }

  /** A client whose calls go through the proxy. */
  client(enqueueDeadline: number): ChokaQ {
    const chokaq = createChokaQ({ storage: postgres(this.proxy.url, optionsFor(this.cut)), enqueueDeadline })
    this.#clients.push(chokaq)
    return chokaq
  }

  /** The application's own transaction, through the proxy. `committed` says what the application knows. */
  async inTransaction(work: (client: pg.Client) => Promise<void>): Promise<'committed' | 'failed'> {
    const client = new pg.Client({
      connectionString: this.proxy.url,
      query_timeout: 2_000,
      connectionTimeoutMillis: 2_000,
    })
    client.on('error', () => undefined)
    try {
      await client.connect()
      await client.query('BEGIN')
      await work(client)
      await client.query('COMMIT')
      return 'committed'
    } catch {
      return 'failed'
    } finally {
      // A client that waits for an answer never says good-bye.
      void client.end().catch(() => undefined)
    }
  }

  // ---- preparation, beside the proxy

  async add(overrides: Partial<NewJob> = {}): Promise<NewJob> {
    const job = newJob(runtime, { queue: this.queue, ...overrides })
    expect(await this.direct.enqueue([job])).toEqual([{ kind: 'inserted' }])
    return job
  }

  async register(driver = this.direct, id = this.worker): Promise<void> {
    await register(driver, id)
  }

  beat(driver: StorageDriver): Promise<BeatVerdict> {
    return driver.heartbeat({ workerId: this.worker, concurrency: 1, runningCount: 0, bufferedCount: 0 })
  }

  fetch(policy: TypePolicy, driver = this.direct, workerId = this.worker): Promise<readonly FetchedJob[]> {
    return driver.fetch({ workerId, queue: this.queue, limit: 10, policies: [policy] })
  }

  async fetchOne(policy: TypePolicy): Promise<FetchedJob> {
    const [job, ...others] = await this.fetch(policy)
    if (job === undefined || others.length > 0) throw new Error(`${others.length + 1} jobs instead of one`)
    return job
  }

  /** Enqueued, fetched and started. */
  async running(policy: TypePolicy, overrides: Partial<NewJob> = {}): Promise<FetchedJob> {
    await this.add({ type: policy.type, ...overrides })
    const job = await this.fetchOne(policy)
    if (job.state === 'fetched') {
      expect(await this.direct.start([{ lease: job.lease, policy }])).toMatchObject([{ kind: 'started' }])
    }
    return job
  }

  // ---- what is stored

  async record(id: string): Promise<JobRecord | undefined> {
    return this.direct.inspector.get(id)
  }

  /** How often it is stored, in all pillars. */
  async copies(where: string, ...values: readonly unknown[]): Promise<number> {
    const parts = ['hot', 'archive', 'dlq'].map((pillar) => `SELECT 1 FROM chokaq.jobs_${pillar} WHERE ${where}`)
    return (await this.database.query(parts.join(' UNION ALL '), values)).length
  }

  /** The number of completed, dead, … of this stage's queue: an outcome that was doubled is counted twice. */
  async counted(name: string): Promise<number> {
    const rows = (await this.direct.inspector.stats()).filter((row) => row.name === name && row.queue === this.queue)
    return rows.reduce((sum, row) => sum + row.value, 0)
  }

  async userRows(note: string): Promise<number> {
    return (await this.database.query('SELECT 1 FROM public.app_rows WHERE note = $1', [note])).length
  }

  async close(): Promise<void> {
    await this.over()
    await Promise.all(this.#clients.map((client) => client.close()))
    await this.proxied.close()
    this.proxy.dropAll()
  }
}

export interface Cuts {
  /** How many requests of the act were cut, one in each run. */
  readonly count: number
  /** What each of them was, in short. */
  readonly requests: readonly string[]
}

/** Runs the act once for every request it makes, with that request cut; the last run is undisturbed. */
export async function everyCut(
  act: Act,
  kind: CutKind,
  where: { direct: StorageDriver; database: TestDatabase; proxy: WireProxy },
  thenDown = false,
): Promise<Cuts> {
  const requests: string[] = []
  for (let at = 1; ; at += 1) {
    const { proxy } = where
    const stage = new Stage({ ...where, cut: { at, kind, thenDown } })
    try {
      await stage.again(() => stage.proxied.ready())
      await act.run(stage)
    } catch (error) {
      const about = `${act.name}, cut ${kind} request ${at}: ${short(proxy.struck ?? 'none was reached')}`
      throw new Error(about, { cause: error })
    } finally {
      await stage.close()
    }
    if (proxy.struck === undefined) return { count: at - 1, requests }
    requests.push(short(proxy.struck))
  }
}

function short(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim().slice(0, 60)
}
