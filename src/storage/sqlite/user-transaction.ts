/**
 * The caller's own handle on the same file: rows of the application and jobs share one synchronous transaction. Nothing
 * here begins, commits or rolls back; every check is about a mistake that would otherwise lose the shared fate or the
 * job itself, silently.
 */
import { ChokaQError } from '../../core/errors.ts'
import type { Runtime } from '../../core/runtime.ts'
import { pendingMigrations } from '../migration.ts'
import {
  canonicalPath,
  type Durability,
  fullSynchronous,
  memoryPath,
  schemaVersion,
  synchronousLevel,
  synchronousName,
} from './connection.ts'
import { isBetterSqlite3Handle, type SqliteDatabase, wrapBetterSqlite3 } from './database.ts'
import { migrations } from './migrations.ts'
import { Session } from './session.ts'
import { translated, troubleOf } from './sqlite-errors.ts'
import { Transaction } from './write-transaction.ts'

export interface UserTransactionOptions {
  readonly path: string
  readonly durability: Durability
  readonly runtime: Runtime
}

export class UserTransactions {
  readonly #options: UserTransactionOptions
  /** Handles that were found to be on our file and schema, with their prepared statements. */
  readonly #known = new WeakMap<object, Session>()

  constructor(options: UserTransactionOptions) {
    this.#options = options
  }

  /** Runs `work` inside the caller's transaction, with a savepoint around each row. */
  run<T>(call: string, handle: unknown, work: (tx: Transaction) => T): T {
    const { path, runtime } = this.#options
    try {
      const session = this.#session(call, handle)
      return work(new Transaction(session, runtime.clock.nowMs(), true, path))
    } catch (error) {
      throw troubleOf(error) === 'unknown' ? error : translated(error, path, 0)
    }
  }

  #session(call: string, handle: unknown): Session {
    const { durability, path } = this.#options
    if (!isBetterSqlite3Handle(handle)) {
      const problem = 'it is no open database handle of better-sqlite3'
      throw new ChokaQError('CHOKAQ_TX_UNSUPPORTED', { call, problem })
    }
    if (!handle.inTransaction) throw new ChokaQError('CHOKAQ_NOT_IN_TRANSACTION', { call })
    if (path === memoryPath) {
      const problem = 'the jobs are in memory, where no other handle reaches them; use a file'
      throw new ChokaQError('CHOKAQ_TX_UNSUPPORTED', { call, problem })
    }
    const known = this.#known.get(handle)
    const session = known ?? new Session(wrapBetterSqlite3(handle))
    if (known === undefined) {
      this.#refuseOtherFile(call, session.db)
      this.#known.set(handle, session)
    }
    const level = synchronousLevel(session.db)
    if (durability === 'full' && level < fullSynchronous) {
      throw new ChokaQError('CHOKAQ_NOT_DURABLE', { found: synchronousName(level) })
    }
    return session
  }

  #refuseOtherFile(call: string, db: SqliteDatabase): void {
    const { path } = this.#options
    const file = db
      .prepare<{ readonly file: string }>(`SELECT file FROM pragma_database_list WHERE name = 'main'`)
      .get()?.file
    const where = file === undefined || file === '' ? 'The database of this handle' : file
    const found = schemaVersion(db, where)
    pendingMigrations(migrations, found)
    if (found < migrations.length) throw new ChokaQError('CHOKAQ_SCHEMA_MISSING', { where })
    if (file !== undefined && file !== '' && canonicalPath(file) === canonicalPath(path)) return
    const problem = `it is a handle on ${where}, and the jobs are in ${path}`
    throw new ChokaQError('CHOKAQ_TX_UNSUPPORTED', { call, problem })
  }
}
