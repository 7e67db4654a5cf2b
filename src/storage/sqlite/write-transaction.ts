/**
 * How this storage takes SQLite's one write lock without stopping the event loop.
 *
 * A write is a synchronous unit of work between BEGIN IMMEDIATE and COMMIT: nothing else of this process can come in
 * between, and the lock is held for as long as the work takes and no longer. The busy timeout of the connection is 0,
 * because SQLite's own waiting blocks the loop and lets some connections starve. Where another process holds the lock,
 * the unit joins a line; the head of the line tries again after 1 to 5 ms of chance, the others wait behind it, so the
 * order of calls is kept and a long wait costs one attempt per few milliseconds, however many calls wait. Each unit has
 * its own deadline, after which it fails with CHOKAQ_STORAGE_BUSY and nothing written.
 *
 * One row must not cost its neighbours their verdicts. A batch first runs without savepoints, which is a third faster.
 * Where the database refuses a row (a constraint, a text too long), the transaction is rolled back and runs again with a
 * savepoint around each row, and the refused row alone gets the error. So a unit may run twice: it keeps no state of its
 * own outside the transaction.
 *
 * Where the disk has no room for another page of the log, the log is first written into the file, as far as that goes:
 * what is in the file need not stay in the log, which then begins anew in the space that it has. So beats and outcomes
 * that change pages the file has already go on while the disk is full, and the unit runs once more. That is tried once
 * in a while and not with each unit, because it waits for the disk.
 *
 * Time is read once per attempt, after the lock was taken, in whole milliseconds (the tables are STRICT).
 */
import { CounterSum } from '../../core/counters.ts'
import { ChokaQError } from '../../core/errors.ts'
import type { FaultPoint, Runtime, Timer } from '../../core/runtime.ts'
import type { Session } from './session.ts'
import { addCounters } from './statements/count.ts'
import { rowError, translated, troubleOf } from './sqlite-errors.ts'

const minRetryMs = 1
const maxRetryMs = 5
const syncWaitMs = 200
/** How long the line may run on before other work of the process gets a turn. */
const maxDrainMs = 10
/** Between two tries to get room on a full disk out of the log. */
const roomPauseMs = 50

/** What a unit of work sees of its transaction. */
export class Transaction {
  readonly session: Session
  readonly nowMs: number
  readonly #isCareful: boolean
  readonly #path: string
  /** Set by work after which a worker may find a job: wakes those that listen, once the transaction is committed. */
  jobsBecameReady = false

  constructor(session: Session, nowMs: number, isCareful: boolean, path: string) {
    this.session = session
    this.nowMs = Math.floor(nowMs)
    this.#isCareful = isCareful
    this.#path = path
  }

  addCounters(sum: CounterSum): void {
    addCounters(this.session, sum.rows(), this.nowMs)
  }

  /** Runs the work of one row. Where the database refuses the row, only its own changes and counts are undone. */
  row<T>(counters: CounterSum, work: (counters: CounterSum) => T, refused: (error: Error) => T): T {
    if (!this.#isCareful) return work(counters)
    const own = new CounterSum()
    this.session.run('SAVEPOINT chokaq_row')
    try {
      const verdict = work(own)
      this.session.run('RELEASE chokaq_row')
      counters.addRows(own.rows())
      return verdict
    } catch (error) {
      if (troubleOf(error) !== 'row') throw error
      this.session.run('ROLLBACK TO chokaq_row')
      this.session.run('RELEASE chokaq_row')
      return refused(rowError(error, this.#path))
    }
  }
}

export interface WriteUnit<T> {
  readonly work: (tx: Transaction) => T
  /** Reached inside the transaction, just before COMMIT. */
  readonly beforeCommit?: FaultPoint
  /** Reached just after COMMIT. */
  readonly committed?: FaultPoint
  /** A beat: it goes on for ever, so it is no sign that the process is at work. */
  readonly isBeat?: true
}

export interface WriterOptions {
  readonly runtime: Runtime
  readonly session: Session
  readonly path: string
  readonly busyDeadlineMs: number
  readonly onCommit: (tx: Transaction) => void
}

interface Waiting {
  readonly call: string
  readonly sinceMs: number
  /** Throws while the lock is held elsewhere; settles its promise otherwise. */
  readonly attempt: () => void
  readonly reject: (error: unknown) => void
}

export class Writer {
  readonly #options: WriterOptions
  readonly #line: Waiting[] = []
  #timer: Timer | undefined
  #madeRoomMs = -Infinity

  constructor(options: WriterOptions) {
    this.#options = options
  }

  /**
   * A write that cannot wait asynchronously, because its caller is a synchronous handler. Where another process holds
   * the lock, SQLite itself waits for a moment: that stops the event loop, so the moment is short.
   */
  writeSync<T>(unit: WriteUnit<T>): T {
    const { session, path } = this.#options
    session.db.exec(`PRAGMA busy_timeout = ${syncWaitMs}`)
    try {
      return this.#once('BEGIN IMMEDIATE', unit, true)
    } catch (error) {
      throw troubleOf(error) === 'unknown' ? error : translated(error, path, syncWaitMs)
    } finally {
      session.db.exec('PRAGMA busy_timeout = 0')
    }
  }

  async write<T>(call: string, unit: WriteUnit<T>): Promise<T> {
    return this.#run(call, this.#line.length === 0, () => this.#transact(unit))
  }

  /** Several reads on one snapshot: no lock that a writer would wait for, and no waiting behind those that write. */
  async read<T>(call: string, work: (tx: Transaction) => T): Promise<T> {
    return this.#run(call, true, () => this.#once('BEGIN', { work }, false))
  }

  /** A quick look without a transaction, only to save one; undefined where it cannot be had now. */
  peek<T>(look: (session: Session) => T): T | undefined {
    try {
      return look(this.#options.session)
    } catch (error) {
      if (troubleOf(error) === 'unknown') throw error
      return undefined
    }
  }

  close(): void {
    this.#timer?.cancel()
    for (const { call, reject } of this.#line.splice(0)) reject(new ChokaQError('CHOKAQ_STORAGE_CLOSED', { call }))
  }

  async #run<T>(call: string, mayTryNow: boolean, attempt: () => T): Promise<T> {
    const sinceMs = this.#options.runtime.clock.monotonicMs()
    if (mayTryNow) {
      try {
        return attempt()
      } catch (error) {
        if (troubleOf(error) !== 'busy') throw translated(error, this.#options.path, 0)
      }
    }
    return new Promise<T>((resolve, reject) => {
      this.#line.push({ call, sinceMs, attempt: () => resolve(attempt()), reject })
      this.#retryLater()
    })
  }

  #retryLater(): void {
    if (this.#timer !== undefined || this.#line.length === 0) return
    const { runtime } = this.#options
    const delayMs = minRetryMs + runtime.random() * (maxRetryMs - minRetryMs)
    this.#timer = runtime.scheduler.after(delayMs, () => {
      this.#timer = undefined
      this.#drain()
      this.#retryLater()
    })
  }

  #drain(): void {
    const { clock } = this.#options.runtime
    const startedMs = clock.monotonicMs()
    for (let head = this.#line[0]; head !== undefined; head = this.#line[0]) {
      try {
        head.attempt()
        this.#line.shift()
      } catch (error) {
        if (troubleOf(error) === 'busy') {
          this.#rejectOverdue(error)
          return
        }
        this.#line.shift()
        head.reject(translated(error, this.#options.path, clock.monotonicMs() - head.sinceMs))
      }
      if (clock.monotonicMs() - startedMs > maxDrainMs) return
    }
  }

  #rejectOverdue(error: unknown): void {
    const { runtime, busyDeadlineMs, path } = this.#options
    const nowMs = runtime.clock.monotonicMs()
    for (let head = this.#line[0]; head !== undefined; head = this.#line[0]) {
      const waitedMs = nowMs - head.sinceMs
      if (waitedMs < busyDeadlineMs) return
      this.#line.shift()
      head.reject(translated(error, path, waitedMs))
    }
  }

  #transact<T>(unit: WriteUnit<T>): T {
    try {
      return this.#withRoom(unit, false)
    } catch (error) {
      if (troubleOf(error) !== 'row') throw error
      return this.#withRoom(unit, true)
    }
  }

  #withRoom<T>(unit: WriteUnit<T>, isCareful: boolean): T {
    const attempt = (): T => this.#once('BEGIN IMMEDIATE', unit, isCareful)
    try {
      return attempt()
    } catch (error) {
      if (troubleOf(error) !== 'full' || !this.#makeRoom()) throw error
      return attempt()
    }
  }

  /** Whether the whole log is in the file now, so that it begins anew. */
  #makeRoom(): boolean {
    const { session, runtime } = this.#options
    const nowMs = runtime.clock.monotonicMs()
    if (nowMs - this.#madeRoomMs < roomPauseMs) return false
    this.#madeRoomMs = nowMs
    const state = this.peek(() =>
      session.get<{ readonly log: number; readonly checkpointed: number }>('PRAGMA wal_checkpoint(PASSIVE)'),
    )
    return state !== undefined && state.log > 0 && state.log === state.checkpointed
  }

  #once<T>(begin: string, unit: WriteUnit<T>, isCareful: boolean): T {
    const { session, runtime, path, onCommit } = this.#options
    session.run(begin)
    let tx: Transaction
    let result: T
    try {
      tx = new Transaction(session, runtime.clock.nowMs(), isCareful, path)
      result = unit.work(tx)
      if (unit.beforeCommit !== undefined) runtime.faults.reach(unit.beforeCommit)
      session.run('COMMIT')
    } catch (error) {
      rollback(session)
      throw error
    }
    if (unit.committed !== undefined) runtime.faults.reach(unit.committed)
    if (begin !== 'BEGIN' && (unit.isBeat !== true || tx.jobsBecameReady)) onCommit(tx)
    return result
  }
}

/** Some errors (a full disk, for one) have rolled back already; and the first error is the one to tell. */
function rollback(session: Session): void {
  try {
    if (session.db.inTransaction) session.run('ROLLBACK')
  } catch {
    // The error that led here says more than this one.
  }
}

/** Repeats an attempt that finds the database locked, with pauses of 1 to 5 ms, until the deadline. */
export async function retryWhileBusy<T>(
  runtime: Runtime,
  path: string,
  deadlineMs: number,
  attempt: () => T,
): Promise<T> {
  const startedMs = runtime.clock.monotonicMs()
  for (;;) {
    try {
      return attempt()
    } catch (error) {
      const waitedMs = runtime.clock.monotonicMs() - startedMs
      if (troubleOf(error) !== 'busy' || waitedMs >= deadlineMs) throw translated(error, path, waitedMs)
    }
    const delayMs = minRetryMs + runtime.random() * (maxRetryMs - minRetryMs)
    await new Promise<void>((resolve) => void runtime.scheduler.after(delayMs, resolve))
  }
}
