/**
 * How this storage runs its statements: alone, or several in one transaction, always under read committed.
 *
 * What is repeated here and what is not. A serialization failure or a deadlock has rolled everything back, so the unit
 * runs again, after a short wait of chance. A lost connection leaves open whether the unit happened: where repeating it
 * is harmless (the unit says so) it runs once more on another connection, which hides a server that closed an idle one;
 * otherwise the caller is told CHOKAQ_STORAGE_FAILED and decides. A lock that did not come in time is for the caller,
 * too: a batch is cut in halves until the row that waits is alone, see batches.ts.
 *
 * So a unit may run several times: it keeps no state of its own outside the transaction.
 */
import { ChokaQError } from '../../core/errors.ts'
import type { FaultPoint, Runtime } from '../../core/runtime.ts'
import { type Connection, type ConnectionSettings, transactionSettings } from './connection.ts'
import type { Lane } from './lane.ts'
import { translated, troubleOf } from './postgres-errors.ts'
import type { SchemaName } from './schema-name.ts'
import { Session } from './session.ts'

const maxConflictCount = 8
const conflictPauseMs = 4
const beginText = 'BEGIN ISOLATION LEVEL READ COMMITTED'

/** What a unit of work sees of its transaction. */
export class Transaction {
  readonly session: Session
  /** Set by work after which a worker may find a job: wakes those that listen, once the transaction is committed. */
  jobsBecameReady = false
  /** Other processes hear of it with the commit itself. */
  hasNotified = false

  constructor(session: Session) {
    this.session = session
  }
}

export interface Unit<T> {
  readonly work: (tx: Transaction) => Promise<T>
  /** The work is one statement: it needs no BEGIN and COMMIT of its own. */
  readonly isOneStatement?: boolean
  /** Running it twice does no harm, so a lost connection is no reason to give up. */
  readonly isRepeatable?: boolean
  /** Instead of the usual time to wait for a lock; only in a transaction of several statements. */
  readonly lockTimeoutMs?: number
  /** Reached just before COMMIT; before the statement where there is only one. */
  readonly beforeCommit?: FaultPoint
  /** Reached just after COMMIT. */
  readonly committed?: FaultPoint
}

export interface TransactionsOptions {
  readonly runtime: Runtime
  readonly settings: ConnectionSettings
  readonly schema: SchemaName
  readonly onCommit: (tx: Transaction) => void
}

export class Transactions {
  readonly #options: TransactionsOptions

  constructor(options: TransactionsOptions) {
    this.#options = options
  }

  async run<T>(call: string, lane: Lane, unit: Unit<T>): Promise<T> {
    const { runtime, settings } = this.#options
    const startedMs = runtime.clock.monotonicMs()
    let conflictCount = 0
    let hasLostConnection = false
    for (;;) {
      try {
        return await lane.use(call, (connection) => this.#once(connection, unit))
      } catch (error) {
        const trouble = troubleOf(error)
        const mayRunAgain =
          (trouble === 'conflict' && (conflictCount += 1) <= maxConflictCount) ||
          (trouble === 'connection' && unit.isRepeatable === true && !hasLostConnection)
        if (!mayRunAgain) {
          throw translated(error, settings.target.location, runtime.clock.monotonicMs() - startedMs)
        }
        if (trouble === 'connection') hasLostConnection = true
        else await this.#pause(conflictCount)
      }
    }
  }

  #pause(round: number): Promise<void> {
    const { runtime } = this.#options
    const delayMs = 1 + runtime.random() * conflictPauseMs * round
    return new Promise((resolve) => void runtime.scheduler.after(delayMs, resolve))
  }

  async #once<T>(connection: Connection, unit: Unit<T>): Promise<T> {
    const { runtime, settings, schema, onCommit } = this.#options
    const tx = new Transaction(new Session(connection, schema))
    const isAlone = unit.isOneStatement === true && !settings.isPooled
    let result: T
    if (isAlone) {
      if (unit.beforeCommit !== undefined) runtime.faults.reach(unit.beforeCommit)
      result = await unit.work(tx)
    } else {
      result = await this.#between(connection, tx, unit)
    }
    if (unit.committed !== undefined) runtime.faults.reach(unit.committed)
    onCommit(tx)
    return result
  }

  async #between<T>(connection: Connection, tx: Transaction, unit: Unit<T>): Promise<T> {
    const { runtime, settings } = this.#options
    const texts = [
      beginText,
      ...(settings.isPooled ? [transactionSettings(settings)] : []),
      ...(unit.lockTimeoutMs === undefined ? [] : [`SET LOCAL lock_timeout = ${unit.lockTimeoutMs}`]),
    ]
    await connection.query(texts.join('; '))
    try {
      const result = await unit.work(tx)
      if (unit.beforeCommit !== undefined) runtime.faults.reach(unit.beforeCommit)
      await commit(connection)
      return result
    } catch (error) {
      await rollback(connection)
      throw error
    }
  }
}

async function commit(connection: Connection): Promise<void> {
  await connection.query('COMMIT')
}

/** A connection that cannot roll back is thrown away: the next user must not inherit an aborted transaction. */
async function rollback(connection: Connection): Promise<void> {
  if (connection.isBroken) return
  try {
    await connection.query('ROLLBACK')
  } catch {
    connection.markBroken()
  }
}

/** Where a unit finds something that only a bug of this storage can bring about. */
export function missingVerdict(what: string): ChokaQError {
  return new ChokaQError('CHOKAQ_ASSERTION', { what: `${what} got no verdict` })
}
