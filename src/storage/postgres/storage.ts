/** The StorageDriver over one PostgreSQL database: connects with the first use and runs each verb in its own lane. */
import { CounterSum, type CounterRow } from '../../core/counters.ts'
import { ChokaQError } from '../../core/errors.ts'
import type { Inspector, InspectorReader, ReaderOptions } from '../../core/inspector.ts'
import type { FetchedJob, NewJob } from '../../core/job.ts'
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
  Hearing,
  JobTypeRow,
  Promotion,
  PruneCounts,
  PruneLimits,
  RescuedJob,
  RescueRequest,
  Settlement,
  SettleVerdict,
  SyncSettlement,
  StartRequest,
  StartVerdict,
  StorageCapabilities,
  StorageDriver,
  WorkerBeat,
  WorkerInfo,
} from '../../core/storage.ts'
import type { ConnectionSettings } from './connection.ts'
import { DeadWalk } from './dead-walk.ts'
import { enqueueBatch } from './enqueue-batch.ts'
import { Fetcher } from './fetcher.ts'
import { runHandlerTransaction } from './handler-transaction.ts'
import { PostgresInspector } from './inspector.ts'
import { install } from './install.ts'
import { Lane } from './lane.ts'
import { ledgerBatch } from './ledger-batch.ts'
import { translated } from './postgres-errors.ts'
import { openReader } from './reader.ts'
import type { SchemaName } from './schema-name.ts'
import { Session } from './session.ts'
import { buryOnArrival } from './statements/bury-on-arrival.ts'
import { claim } from './statements/claim.ts'
import { enqueueAll } from './statements/enqueue.ts'
import { busyQueues } from './statements/fetch.ts'
import { ledger } from './statements/ledger.ts'
import {
  disown,
  type DisownRequest,
  heartbeat,
  registerWorker,
  retireWorker,
  saveJobTypes,
  unknownLeases,
} from './statements/process.ts'
import { prune } from './statements/prune.ts'
import { refuseOldSnapshot, settle, settleInside } from './statements/settle.ts'
import { start } from './statements/start.ts'
import { hasLost, promote, readBeats, rescue } from './statements/sweep.ts'
import { Transaction, Transactions, type Unit } from './transactions.ts'
import { openUserTransaction } from './user-transaction.ts'
import { Wake } from './wake.ts'

export interface PostgresStorageOptions {
  readonly settings: ConnectionSettings
  readonly schema: SchemaName
  readonly channel: string
  readonly poolSize: number
  /** Connections for ctx.transaction. */
  readonly handlerPoolSize: number
  readonly migrate: boolean
  readonly capabilities: StorageCapabilities
  readonly runtime: Runtime
}

/** Outcomes share two connections: one on its way while the other is waited for. */
const settleConnections = 2

const one = { isOneStatement: true, isRepeatable: true } as const

export class PostgresStorageDriver implements StorageDriver {
  readonly capabilities: StorageCapabilities
  readonly inspector: Inspector
  readonly #options: PostgresStorageOptions
  readonly #transactions: Transactions
  readonly #wake: Wake
  readonly #lanes: Readonly<Record<'main' | 'settle' | 'beat' | 'handler', Lane>>
  readonly #fetcher: Fetcher
  readonly #ownWalk: DeadWalk
  readonly #lostWalk: DeadWalk
  #installing: Promise<void> | undefined
  #isInstalled = false
  readonly #readers: InspectorReader[] = []
  #isClosed = false

  constructor(options: PostgresStorageOptions) {
    const { settings, runtime, schema, channel, poolSize, handlerPoolSize, capabilities } = options
    this.#options = options
    this.capabilities = capabilities
    this.#lanes = {
      main: new Lane(settings, 'main', poolSize),
      settle: new Lane(settings, 'settle', settleConnections),
      beat: new Lane(settings, 'beat', 1),
      handler: new Lane({ ...settings, isBare: true }, 'handler', handlerPoolSize),
    }
    const onCommit = (tx: Transaction): void => {
      if (tx.jobsBecameReady) this.#wake.notify({ isSent: tx.hasNotified })
    }
    this.#transactions = new Transactions({ runtime, settings, schema, onCommit })
    this.#fetcher = new Fetcher((unit) => this.#run('fetch', this.#lanes.main, unit), runtime.clock)
    this.#ownWalk = new DeadWalk(runtime.clock)
    this.#lostWalk = new DeadWalk(runtime.clock)
    this.#wake = new Wake({
      runtime,
      settings,
      channel,
      mayListen: capabilities.supportsListen,
      send: (to, payload) =>
        this.#lanes.beat.use('notify', async (connection) => {
          await connection.query('SELECT pg_catalog.pg_notify($1, $2)', [to, payload])
        }),
    })
    this.inspector = new PostgresInspector((call, unit) => this.#run(call, this.#lanes.main, unit))
  }

  async ready(): Promise<void> {
    await this.#open('ready')
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#installing?.catch(() => undefined)
    await this.#wake.close()
    await Promise.all([...Object.values(this.#lanes), ...this.#readers].map((each) => each.close()))
  }

  openReader(options: ReaderOptions): InspectorReader {
    const reader = openReader(this.#options, options, () => this.#open('inspector'))
    this.#readers.push(reader)
    return reader
  }

  onWake(listener: () => void, onHearing?: (hearing: Hearing) => void): () => void {
    this.#refuseClosed('onWake')
    return this.#wake.listen(listener, onHearing)
  }

  // ---- enqueue

  async enqueue(jobs: readonly NewJob[]): Promise<readonly EnqueueVerdict[]> {
    await this.#open('enqueue')
    const run = <T>(unit: Unit<T>): Promise<T> => this.#run('enqueue', this.#lanes.main, unit)
    return enqueueBatch(run, jobs, () => this.#wake.takeLoneTurn())
  }

  enqueueSync(): readonly EnqueueVerdict[] {
    const problem = 'transactions of PostgreSQL are asynchronous. Use enqueue(…, { tx })'
    throw new ChokaQError('CHOKAQ_TX_UNSUPPORTED', { call: 'enqueueSync', problem })
  }

  async enqueueIn(handle: unknown, jobs: readonly NewJob[]): Promise<readonly EnqueueVerdict[]> {
    const tx = await this.#userTransaction('enqueue', handle)
    const counters = new CounterSum()
    const verdicts = await enqueueAll(tx, jobs, counters)
    await tx.session.addCounters(counters)
    await this.#notifyInside(tx)
    return verdicts
  }

  async #userTransaction(call: string, handle: unknown): Promise<Transaction> {
    await this.#open(call)
    return new Transaction(new Session(await openUserTransaction(call, handle), this.#options.schema))
  }

  /** Sent when the caller commits. Not by each of many transactions: their commits would wait for each other. */
  async #notifyInside(tx: Transaction): Promise<void> {
    if (!tx.jobsBecameReady || !this.#wake.takeTurn()) return
    // Not in the list of what is selected: Prisma cannot read a column of type void.
    const notify = 'SELECT 1 AS sent FROM pg_catalog.pg_notify($1::text, $2::text)'
    await tx.session.all(notify, this.#wake.channel, '')
  }

  buryOnArrival(dead: DeadOnArrival): Promise<boolean> {
    return this.#run('buryOnArrival', this.#lanes.main, { work: (tx) => buryOnArrival(tx, dead) })
  }

  // ---- fetch

  async fetch(request: FetchRequest): Promise<readonly FetchedJob[]> {
    await this.#open('fetch')
    return this.#fetcher.fetch(request)
  }

  busyQueues(request: BusyQueuesRequest): Promise<readonly string[]> {
    return this.#run('busyQueues', this.#lanes.main, { ...one, work: ({ session }) => busyQueues(session, request) })
  }

  async claim(requests: readonly ClaimRequest[]): Promise<readonly ClaimVerdict[]> {
    await this.#open('claim')
    return claim((unit) => this.#run('claim', this.#lanes.settle, unit), requests)
  }

  async start(requests: readonly StartRequest[]): Promise<readonly StartVerdict[]> {
    await this.#open('start')
    return start((unit) => this.#run('start', this.#lanes.settle, unit), requests)
  }

  // ---- settle

  async settle(settlements: readonly Settlement[]): Promise<readonly SettleVerdict[]> {
    await this.#open('settle')
    return settle((unit) => this.#run('settle', this.#lanes.settle, unit), settlements)
  }

  completeSync(): SettleVerdict {
    const problem = 'transactions of PostgreSQL are asynchronous. Use ctx.complete(tx, result)'
    throw new ChokaQError('CHOKAQ_TX_UNSUPPORTED', { call: 'ctx.completeSync', problem })
  }

  async completeIn(handle: unknown, settlement: SyncSettlement): Promise<SettleVerdict> {
    const tx = await this.#userTransaction('ctx.complete', handle)
    const { action } = settlement
    if (action.kind === 'complete' && action.guard === true) await refuseOldSnapshot(tx.session)
    await ledger(tx, settlement.outcomes ?? [], { mayWait: true })
    const verdict = await settleInside(tx, settlement)
    await this.#notifyInside(tx)
    return verdict
  }

  async transaction(
    request: CheckpointRequest,
    work: (tx: unknown) => Promise<string | null>,
  ): Promise<CheckpointVerdict> {
    await this.#open('ctx.transaction')
    const { runtime, schema, settings } = this.#options
    const options = {
      runtime,
      schema,
      lane: this.#lanes.handler,
      settings,
      readBack: <T>(read: (session: Session) => Promise<T>) =>
        this.#run('ctx.transaction', this.#lanes.settle, {
          isRepeatable: true,
          // A transaction that lost its client ends by itself in this time, and its row is waited for.
          lockTimeoutMs: settings.statementDeadlineMs,
          work: ({ session }) => read(session),
        }),
    }
    return runHandlerTransaction(options, request, work)
  }

  transactionSync(): CheckpointVerdict {
    const problem = 'transactions of PostgreSQL are asynchronous. Use ctx.transaction'
    throw new ChokaQError('CHOKAQ_TX_UNSUPPORTED', { call: 'ctx.transactionSync', problem })
  }

  // ---- process

  registerWorker(info: WorkerInfo): Promise<void> {
    return this.#run('registerWorker', this.#lanes.beat, { ...one, work: (tx) => registerWorker(tx, info) })
  }

  heartbeat(request: BeatRequest): Promise<BeatVerdict> {
    const isLook = this.#ownWalk.isDue
    const call = (): Promise<BeatVerdict> =>
      this.#run('heartbeat', this.#lanes.beat, {
        ...one,
        work: (tx) => heartbeat(tx, request, { isLook }),
        beforeCommit: 'heartbeat-before-commit',
      })
    return isLook ? this.#ownWalk.take(call) : call()
  }

  async disown(request: DisownRequest): Promise<number> {
    const look = { ...one, work: (tx: Transaction) => unknownLeases(tx, request) }
    const leases = await this.#ownWalk.take(() => this.#run('disown', this.#lanes.beat, look))
    if (leases.length === 0) return 0
    return this.#run('disown', this.#lanes.beat, { work: (tx) => disown(tx, request.workerId, leases) })
  }

  retireWorker(workerId: string): Promise<void> {
    return this.#run('retireWorker', this.#lanes.beat, { ...one, work: (tx) => retireWorker(tx, workerId) })
  }

  saveJobTypes(rows: readonly JobTypeRow[]): Promise<void> {
    return this.#run('saveJobTypes', this.#lanes.main, { ...one, work: (tx) => saveJobTypes(tx, rows) })
  }

  ledger(requests: readonly LedgerRequest[]): Promise<readonly LedgerVerdict[]> {
    return ledgerBatch((unit) => this.#run('ledger', this.#lanes.settle, unit), requests)
  }

  // ---- sweep

  readBeats(): Promise<readonly WorkerBeat[]> {
    return this.#run('readBeats', this.#lanes.main, { ...one, work: ({ session }) => readBeats(session) })
  }

  async rescue(request: RescueRequest): Promise<readonly RescuedJob[]> {
    const lane = this.#lanes.main
    const { deadWorkerIds } = request
    if (deadWorkerIds.length === 0) {
      if (!this.#lostWalk.isDue) return []
      const isLost = { ...one, work: ({ session }: Transaction) => hasLost(session) }
      if (!(await this.#lostWalk.take(() => this.#run('rescue', lane, isLost)))) return []
    }
    const rescued = await this.#run('rescue', lane, {
      work: (tx) => rescue(tx, request),
      beforeCommit: 'rescue-before-commit',
      committed: 'rescue-committed',
    })
    if (rescued.length > 0) this.#fetcher.forgetFronts()
    return rescued
  }

  promote(request: { readonly limit: number }): Promise<Promotion> {
    // Three statements, and each stands for itself.
    return this.#run('promote', this.#lanes.main, { ...one, work: (tx) => promote(tx, request) })
  }

  prune(limits: PruneLimits): Promise<PruneCounts> {
    return this.#run('prune', this.#lanes.main, {
      work: (tx) => prune(tx, limits),
      beforeCommit: 'prune-before-commit',
    })
  }

  async count(rows: readonly CounterRow[]): Promise<void> {
    if (rows.length === 0) this.#refuseClosed('count')
    else {
      await this.#run('count', this.#lanes.main, {
        isOneStatement: true,
        work: ({ session }) => session.addCounterRows(rows),
      })
    }
  }

  // ---- opening

  async #run<T>(call: string, lane: Lane, unit: Unit<T>): Promise<T> {
    if (!this.#isInstalled) await this.#open(call)
    return this.#transactions.run(call, lane, unit)
  }

  #refuseClosed(call: string): void {
    if (this.#isClosed) throw new ChokaQError('CHOKAQ_STORAGE_CLOSED', { call })
  }

  /** Once; after a failure the next call tries again. */
  async #open(call: string): Promise<void> {
    this.#refuseClosed(call)
    if (this.#isInstalled) return
    this.#installing ??= this.#install().finally(() => (this.#installing = undefined))
    await this.#installing
    this.#refuseClosed(call)
  }

  async #install(): Promise<void> {
    const { schema, runtime, migrate, settings } = this.#options
    const { location } = settings.target
    const startedMs = runtime.clock.monotonicMs()
    try {
      await this.#lanes.main.use('ready', (connection) => install(connection, { schema, runtime, location, migrate }))
    } catch (error) {
      throw translated(error, location, runtime.clock.monotonicMs() - startedMs)
    }
    this.#isInstalled = true
  }
}
