// One run: a database, the processes on it, the history they write, and the verdict of the checker at the end.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createChokaQ, type ChokaQ } from '../../src/engine/enqueue/client.ts'
import { partsOf } from '../../src/engine/parts.ts'
import type { WorkerOptions } from '../../src/core/config.ts'
import type { JobRecord } from '../../src/core/job.ts'
import type { StorageDriver } from '../../src/core/storage.ts'
import { check, type Rules } from './checker.ts'
import { CrashProcess, type Ending } from './crash-process.ts'
import { HistoryWriter } from './fixtures/history-writer.ts'
import { openStorage } from './fixtures/open-storage.ts'
import { placeOrder } from './fixtures/place-order.ts'
import { kinds, leaseTimes, type Kind, type Order, type Setup, type Work } from './fixtures/work.ts'
import { HistoryReader, linesOf, type Line } from './history.ts'
import { allOf, readSnapshot, type Snapshot } from './snapshot.ts'
import type { CrashDatabase, CrashDatabaseOptions, CrashStorage } from './storages.ts'
import { until } from './until.ts'

export interface WorkerAsk {
  readonly faults?: readonly string[]
  readonly kinds?: readonly Kind[]
  readonly options?: WorkerOptions
  readonly anonymous?: boolean
  readonly nodeFlags?: readonly string[]
}

const deadlineMs = 20_000
/** Many kills hit the same jobs; where the budget is the point, the test sets it. */
const generous = { crashBudget: 50, fetchCrashBudget: 50 } as const

export class CrashRun {
  readonly chokaq: ChokaQ
  readonly driver: StorageDriver
  readonly database: CrashDatabase
  readonly history: HistoryWriter
  readonly #processes: CrashProcess[] = []
  readonly #reader: HistoryReader
  #opCount = 0
  #isClosed = false

  static async open(storage: CrashStorage, options?: CrashDatabaseOptions): Promise<CrashRun> {
    return new CrashRun(await storage.create(options))
  }

  private constructor(database: CrashDatabase) {
    this.database = database
    this.history = new HistoryWriter(this.#historyFolder, 'test')
    this.#reader = new HistoryReader(this.#historyFolder)
    this.chokaq = createChokaQ({ storage: openStorage(this.database.url) })
    this.driver = partsOf(this.chokaq).driver
  }

  get #historyFolder(): string {
    return join(this.database.folder, 'history')
  }

  lines(): Line[] {
    return this.#reader.read()
  }

  // ---- processes

  /** Resolves when it has registered, or has ended before that. */
  async worker(name: string, ask: WorkerAsk = {}): Promise<CrashProcess> {
    const worker = this.launch(name, ask)
    await until(`${name} to start`, deadlineMs, () => worker.ending !== undefined || this.#isUp(worker))
    return worker
  }

  /** As `worker`, without waiting for it. */
  launch(name: string, ask: WorkerAsk = {}): CrashProcess {
    const { faults = [], options = {}, anonymous = false, nodeFlags } = ask
    const setup = {
      role: 'worker',
      kinds: ask.kinds ?? kinds,
      options: { ...generous, ...options },
      anonymous,
    } as const
    return this.#start({ ...setup, ...this.#common(name, faults) }, nodeFlags)
  }

  /** Resolves when it has ended. */
  async producer(name: string, orders: readonly Order[], faults: readonly string[] = []): Promise<Ending> {
    return this.#start({ role: 'producer', orders, ...this.#common(name, faults) }).ended
  }

  /** A producer of random orders, until it is stopped. */
  stream(name: string, seed: number, pauseMs: number, faults: readonly string[] = []): CrashProcess {
    return this.#start({ role: 'producer', orders: [], stream: { seed, pauseMs }, ...this.#common(name, faults) })
  }

  /** Asks it to stop once it hears it, and waits for its end. */
  async stop(process: CrashProcess): Promise<void> {
    await until(`${process.name} to start`, deadlineMs, () => process.ending !== undefined || this.#isUp(process))
    process.askToStop(leaseTimes.shutdownGrace)
    await process.ended
  }

  async operator(name: string, faults: readonly string[] = []): Promise<Ending> {
    return this.#start({ role: 'operator', act: 'resurrect-all', ...this.#common(name, faults) }).ended
  }

  #start(setup: Setup, nodeFlags?: readonly string[]): CrashProcess {
    // A test that ran out of time goes on behind its own end.
    if (this.#isClosed) throw new Error('the run is over')
    const process = new CrashProcess(setup, this.database.folder, this.history, nodeFlags)
    this.#processes.push(process)
    return process
  }

  #common(name: string, faults: readonly string[]) {
    return { name, url: this.database.url, history: this.#historyFolder, faults }
  }

  #isUp({ pid }: CrashProcess): boolean {
    return linesOf(this.#reader.unsorted(), 'up').some((line) => line.pid === pid)
  }

  // ---- jobs

  /** Enqueues from the test's own process; gives the id. */
  async enqueue(kind: Kind, what: Partial<Work> = {}, order: Partial<Order> = {}): Promise<string> {
    return placeOrder(this.chokaq, this.history, this.order(kind, what, order), this.database.url)
  }

  order(kind: Kind, what: Partial<Work> = {}, order: Partial<Order> = {}): Order {
    this.#opCount += 1
    return { kind, work: { op: `${kind}-${this.#opCount}`, ...what }, ...order }
  }

  /** A file whose making lets held handlers go on. */
  gate(): { readonly held: Partial<Work>; readonly deaf: Partial<Work>; open(): void } {
    const gate = join(this.database.folder, 'gate')
    return {
      held: { gate, do: 'hold' },
      deaf: { gate, do: 'hold-deaf' },
      open: () => {
        writeFileSync(gate, '')
      },
    }
  }

  async job(id: string): Promise<JobRecord> {
    const record = await this.driver.inspector.get(id)
    if (record === undefined) throw new Error(`job ${id} is nowhere`)
    return record
  }

  /** The first line that matches, now or later. */
  line<K extends Line['kind']>(kind: K, matches: (line: Extract<Line, { kind: K }>) => boolean = () => true) {
    return until(`a line ${kind}`, deadlineMs, () => linesOf(this.#reader.unsorted(), kind).find(matches))
  }

  /** Until the job is where the test wants it. */
  async place(id: string, isThere: (job: JobRecord) => boolean): Promise<JobRecord> {
    return until(`job ${id} to get there`, deadlineMs, async () => {
      const record = await this.job(id)
      return isThere(record) ? record : undefined
    })
  }

  /** Until nothing is left to do; jobs of paused queues may wait. */
  async drained(limitMs = deadlineMs): Promise<void> {
    await until('the queues to run empty', limitMs, async () => {
      const queues = await this.driver.inspector.queues()
      return queues.every(
        (q) => q.paused || q.scheduledCount + q.pendingCount + q.fetchedCount + q.processingCount === 0,
      )
    }).catch(async (error: unknown) => {
      const left = (await allOf(this.driver, 'hot')).map((job) => `${job.type} ${job.state} ${job.payload ?? ''}`)
      throw new Error(`left in hot:\n${left.slice(0, 10).join('\n')}\n${this.#lastWords()}`, { cause: error })
    })
  }

  // ---- the end

  /** Stops what still runs and hands everything to the checker: what it gives should be empty. */
  async verdict(rules: Rules = {}): Promise<readonly string[]> {
    const running = this.#processes.filter(({ ending }) => ending === undefined)
    for (const process of running) process.askToStop(leaseTimes.shutdownGrace)
    const left = () => running.filter(({ ending }) => ending === undefined)
    await until('the processes to stop', deadlineMs, () => left().length === 0).catch((error: unknown) => {
      const names = left().map(({ name }) => name)
      throw new Error(`${names.join(', ')} did not stop\n${this.#lastWords()}`, { cause: error })
    })
    return [...check(this.lines(), await this.snapshot(), rules), ...(await this.database.damage())]
  }

  async snapshot(): Promise<Snapshot> {
    return readSnapshot(this.driver, await this.database.userRows())
  }

  get killCount(): number {
    return this.#processes.filter(({ ending }) => ending !== undefined && isViolent(ending)).length
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all(this.#processes.map((process) => process.kill('the end of the test')))
    await this.chokaq.close()
    await this.database.remove()
  }

  /** How it ended, what it did last and what it wrote: for the message of a test that fails. */
  lastWordsOf(process: CrashProcess): string {
    const { name, pid, ending } = process
    const acts = this.#reader.unsorted().filter((line) => line.pid === pid && line.kind !== 'policy')
    const isUp = acts.some(({ kind }) => kind === 'up')
    const end = ending === undefined ? 'runs' : `ended (${ending.signal ?? ending.code})`
    const last = acts.slice(-5).map((line) => JSON.stringify(line))
    return [`${name} ${end}, was ${isUp ? '' : 'never '}up`, ...last, process.said().slice(-1_000)].join('\n')
  }

  #lastWords(): string {
    return this.#processes.map((each) => this.lastWordsOf(each)).join('\n')
  }
}

/** A death that nobody asked for politely: a signal that cannot be caught, an abort, an exit in the middle of work. */
function isViolent({ code, signal }: Ending): boolean {
  return (signal !== null && signal !== 'SIGTERM') || (code !== null && code !== 0)
}
