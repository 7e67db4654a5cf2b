/** The StorageDriver over one SQLite file: opens it with the first use and runs each verb in its own transaction. */
import { CounterSum, type CounterRow } from '../../core/counters.ts'
import { ChokaQError } from '../../core/errors.ts'
import type { Inspector, InspectorReader, ReaderOptions } from '../../core/inspector.ts'
import type { FetchedJob, NewJob } from '../../core/job.ts'
import type { Lease } from '../../core/lease.ts'
import type { LedgerRequest, LedgerVerdict } from '../../core/ledger.ts'
import type { Runtime } from '../../core/runtime.ts'
import type {
  BeatRequest,
  BeatVerdict,
  BusyQueuesRequest,
  CheckpointRequest,
  CheckpointVerdict,
  ClaimRequest,
  ClaimVerdict,
  DeadOnArrival,
  EnqueueVerdict,
  FetchRequest,
  JobTypeRow,
  Promotion,
  PruneCounts,
  PruneLimits,
  RescuedJob,
  RescueRequest,
  Settlement,
  SyncSettlement,
  SettleVerdict,
  StartRequest,
  StartVerdict,
  StorageCapabilities,
  StorageDriver,
  WorkerBeat,
  WorkerInfo,
} from '../../core/storage.ts'
import { IdleCheckpoint } from './checkpoint.ts'
import { type ConnectionOptions, memoryPath, openConnection } from './connection.ts'
import { SqliteInspector } from './inspector.ts'
import { ReaderThread } from './reader.ts'
import { Session } from './session.ts'
import { buryOnArrival, enqueue } from './statements/enqueue.ts'
import { runCheckpoint } from './statements/checkpoint.ts'
import { addCounters } from './statements/count.ts'
import { busyQueues, claim, fetch, hasPending } from './statements/fetch.ts'
import { ledger } from './statements/ledger.ts'
import { disown, heartbeat, registerWorker, retireWorker, saveJobTypes } from './statements/process.ts'
import { prune } from './statements/prune.ts'
import { settle, settleOne } from './statements/settle.ts'
import { start } from './statements/start.ts'
import { hasLost, nextDueAtMs, promote, readBeats, rescue } from './statements/sweep.ts'
import { UserTransactions } from './user-transaction.ts'
import { Wake } from './wake.ts'
import { retryWhileBusy, type Transaction, Writer, type WriteUnit } from './write-transaction.ts'

export interface SqliteStorageOptions extends ConnectionOptions {
  readonly busyDeadlineMs: number
  readonly capabilities: StorageCapabilities
}

/** What exists while the file is open. */
interface Opened {
  readonly session: Session
  readonly writer: Writer
  readonly checkpoint: IdleCheckpoint | undefined
}

export class SqliteStorageDriver implements StorageDriver {
  readonly capabilities: StorageCapabilities
  readonly inspector: Inspector
  readonly #options: SqliteStorageOptions
  readonly #runtime: Runtime
  readonly #wake: Wake
  readonly #userTransactions: UserTransactions
  #opening: Promise<Opened> | undefined
  #opened: Opened | undefined
  readonly #readers = new Set<ReaderThread>()
  #isClosed = false
  /** The transaction of a handler while its synchronous callback runs. */
  #handlerTransaction: Transaction | undefined

  constructor(options: SqliteStorageOptions) {
    this.#options = options
    this.#runtime = options.runtime
    this.capabilities = options.capabilities
    this.#userTransactions = new UserTransactions(options)
    this.inspector = new SqliteInspector({
      read: async (call, work) => (await this.#open(call)).writer.read(call, work),
      write: (call, unit) => this.#write(call, unit),
    })
    this.#wake = new Wake({
      runtime: options.runtime,
      isShared: options.path !== memoryPath,
      dataVersion: () =>
        this.#opened?.writer.peek(
          (session) => session.get<{ readonly data_version: number }>('PRAGMA data_version')?.data_version,
        ),
    })
  }

  async ready(): Promise<void> {
    await this.#open('ready')
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#readers].map((reader) => reader.close()))
    this.#wake.close()
    const opened = this.#opened ?? (await this.#opening?.catch(() => undefined))
    if (opened === undefined || this.#opened === undefined) return
    this.#opened = undefined
    opened.checkpoint?.close()
    opened.writer.close()
    opened.session.db.close()
  }

  openReader(options: ReaderOptions): InspectorReader {
    const { path, driver } = this.#options
    const ready = (): Promise<unknown> => this.#open('inspector')
    const reader = new ReaderThread({ ...options, path, driver, ready, runtime: this.#runtime, direct: this.inspector })
    this.#readers.add(reader)
    return reader
  }

  onWake(listener: () => void): () => void {
    this.#refuseClosed('onWake')
    return this.#wake.listen(listener)
  }

  // ---- enqueue

  enqueue(jobs: readonly NewJob[]): Promise<readonly EnqueueVerdict[]> {
    return this.#write('enqueue', {
      work: (tx) => enqueue(tx, jobs),
      beforeCommit: 'enqueue-before-commit',
      committed: 'enqueue-committed',
    })
  }

  enqueueSync(tx: unknown, jobs: readonly NewJob[]): readonly EnqueueVerdict[] {
    return this.#inUserTransaction('enqueueSync', tx, (own) => enqueue(own, jobs))
  }

  async enqueueIn(): Promise<readonly EnqueueVerdict[]> {
    const problem = 'callbacks of SQLite transactions are synchronous. Use enqueueSync inside the transaction'
    throw new ChokaQError('CHOKAQ_TX_UNSUPPORTED', { call: 'enqueue', problem })
  }

  buryOnArrival(dead: DeadOnArrival): Promise<boolean> {
    return this.#write('buryOnArrival', { work: (tx) => buryOnArrival(tx, dead) })
  }

  // ---- fetch

  async fetch(request: FetchRequest): Promise<readonly FetchedJob[]> {
    const { writer } = this.#opened ?? (await this.#open('fetch'))
    if (writer.peek((session) => hasPending(session, request)) === false) return []
    return writer.write('fetch', {
      work: (tx) => fetch(tx, request),
      beforeCommit: 'fetch-before-commit',
      committed: 'fetch-committed',
    })
  }

  async busyQueues(request: BusyQueuesRequest): Promise<readonly string[]> {
    return (await this.#open('busyQueues')).writer.read('busyQueues', ({ session }) => busyQueues(session, request))
  }

  claim(requests: readonly ClaimRequest[]): Promise<readonly ClaimVerdict[]> {
    return this.#write('claim', { work: (tx) => claim(tx, requests), committed: 'claim-committed' })
  }

  start(requests: readonly StartRequest[]): Promise<readonly StartVerdict[]> {
    return this.#write('start', { work: (tx) => start(tx, requests), committed: 'start-committed' })
  }

  // ---- settle

  settle(settlements: readonly Settlement[]): Promise<readonly SettleVerdict[]> {
    return this.#write('settle', {
      work: (tx) => settle(tx, settlements),
      beforeCommit: 'settle-before-commit',
      committed: 'settle-committed',
    })
  }

  completeSync(tx: unknown, settlement: SyncSettlement): SettleVerdict {
    return this.#inUserTransaction('completeSync', tx, (own) => {
      ledger(own, settlement.outcomes ?? [])
      const counters = new CounterSum()
      const verdict = own.row<SettleVerdict>(
        counters,
        (counted) => settleOne(own, settlement, counted),
        (error) => ({ kind: 'refused', error }),
      )
      own.addCounters(counters)
      return verdict
    })
  }

  async completeIn(): Promise<SettleVerdict> {
    const problem = 'callbacks of SQLite transactions are synchronous. Use ctx.completeSync inside the transaction'
    throw new ChokaQError('CHOKAQ_TX_UNSUPPORTED', { call: 'ctx.complete', problem })
  }

  async transaction(): Promise<CheckpointVerdict> {
    const problem = 'callbacks of SQLite transactions are synchronous. Use ctx.transactionSync'
    throw new ChokaQError('CHOKAQ_TX_UNSUPPORTED', { call: 'ctx.transaction', problem })
  }

  transactionSync(request: CheckpointRequest, work: (tx: unknown) => string | null): CheckpointVerdict {
    this.#refuseClosed('ctx.transactionSync')
    const opened = this.#opened
    if (opened === undefined) throw new ChokaQError('CHOKAQ_ASSERTION', { what: 'a handler runs on an open storage' })
    return opened.writer.writeSync({
      work: (tx) => {
        this.#handlerTransaction = tx
        try {
          return runCheckpoint(tx, request, work)
        } finally {
          this.#handlerTransaction = undefined
        }
      },
      beforeCommit: 'ledger-before-commit',
      committed: 'ledger-committed',
    })
  }

  // ---- process

  registerWorker(info: WorkerInfo): Promise<void> {
    return this.#write('registerWorker', { work: (tx) => registerWorker(tx, info) })
  }

  heartbeat(request: BeatRequest): Promise<BeatVerdict> {
    return this.#write('heartbeat', {
      work: (tx) => heartbeat(tx, request),
      beforeCommit: 'heartbeat-before-commit',
      isBeat: true,
    })
  }

  disown(request: {
    readonly workerId: string
    readonly inHand: readonly Lease[]
    readonly fetchedBeforeMs: number
  }): Promise<number> {
    return this.#write('disown', { work: (tx) => disown(tx, request), isBeat: true })
  }

  retireWorker(workerId: string): Promise<void> {
    return this.#write('retireWorker', { work: (tx) => retireWorker(tx, workerId) })
  }

  saveJobTypes(rows: readonly JobTypeRow[]): Promise<void> {
    return this.#write('saveJobTypes', { work: (tx) => saveJobTypes(tx, rows) })
  }

  ledger(requests: readonly LedgerRequest[]): Promise<readonly LedgerVerdict[]> {
    return this.#write('ledger', {
      work: (tx) => ledger(tx, requests),
      beforeCommit: 'ledger-before-commit',
      committed: 'ledger-committed',
    })
  }

  // ---- sweep

  async readBeats(): Promise<readonly WorkerBeat[]> {
    return (await this.#open('readBeats')).writer.read('readBeats', ({ session }) => readBeats(session))
  }

  async rescue(request: RescueRequest): Promise<readonly RescuedJob[]> {
    const { writer } = await this.#open('rescue')
    if (writer.peek((session) => hasLost(session, request.deadWorkerIds)) === false) return []
    return writer.write('rescue', {
      work: (tx) => rescue(tx, request),
      beforeCommit: 'rescue-before-commit',
      committed: 'rescue-committed',
    })
  }

  async promote(request: { readonly limit: number }): Promise<Promotion> {
    const { writer } = await this.#open('promote')
    const nowMs = Math.floor(this.#runtime.clock.nowMs())
    const next = writer.peek((session) => nextDueAtMs(session) ?? Infinity)
    if (next === Infinity) return { promotedCount: 0, nextDueInMs: undefined }
    if (next !== undefined && next > nowMs) return { promotedCount: 0, nextDueInMs: next - nowMs }
    return writer.write('promote', { work: (tx) => promote(tx, request) })
  }

  prune(limits: PruneLimits): Promise<PruneCounts> {
    return this.#write('prune', { work: (tx) => prune(tx, limits), beforeCommit: 'prune-before-commit' })
  }

  async count(rows: readonly CounterRow[]): Promise<void> {
    if (rows.length === 0) this.#refuseClosed('count')
    else await this.#write('count', { work: ({ session, nowMs }) => addCounters(session, rows, nowMs) })
  }

  // ---- opening

  async #write<T>(call: string, unit: WriteUnit<T>): Promise<T> {
    const opened = this.#opened ?? (await this.#open(call))
    return opened.writer.write(call, unit)
  }

  #inUserTransaction<T>(call: string, handle: unknown, work: (tx: Transaction) => T): T {
    this.#refuseClosed(call)
    const own = this.#handlerTransaction
    // Inside ctx.transactionSync the handle is this storage's own: its transaction is the one to share.
    if (own !== undefined && handle === own.session.db.handle) return work(own)
    return this.#userTransactions.run(call, handle, (tx) => {
      const result = work(tx)
      // The caller commits in this tick; a listener that looks after it finds the job.
      if (tx.jobsBecameReady) this.#wake.notify()
      return result
    })
  }

  #refuseClosed(call: string): void {
    if (this.#isClosed) throw new ChokaQError('CHOKAQ_STORAGE_CLOSED', { call })
  }

  /** Once; after a failure the next call tries again. */
  async #open(call: string): Promise<Opened> {
    this.#refuseClosed(call)
    if (this.#opened !== undefined) return this.#opened
    this.#opening ??= this.#openFile().finally(() => (this.#opening = undefined))
    const opened = await this.#opening
    this.#refuseClosed(call)
    return opened
  }

  async #openFile(): Promise<Opened> {
    const { path, busyDeadlineMs } = this.#options
    const db = await retryWhileBusy(this.#runtime, path, busyDeadlineMs, () => openConnection(this.#options))
    const session = new Session(db)
    const checkpoint = path === memoryPath ? undefined : new IdleCheckpoint(this.#runtime, session)
    const onCommit = (tx: Transaction): void => {
      checkpoint?.touch()
      if (tx.jobsBecameReady) this.#wake.notify()
    }
    const writer = new Writer({ runtime: this.#runtime, session, path, busyDeadlineMs, onCommit })
    this.#opened = { session, writer, checkpoint }
    return this.#opened
  }
}
