/** 'chokaq/sqlite': jobs in an embedded SQLite file on one machine. */
import type { Storage, StorageCapabilities } from '../../core/storage.ts'
import { type Durability, memoryPath } from './connection.ts'
import { betterSqlite3, type SqliteDriver } from './database.ts'
import { SqliteStorageDriver } from './storage.ts'

export type { Durability } from './connection.ts'
export type { SqliteDatabase, SqliteDriver, SqliteStatement, SqlValue } from './database.ts'

export interface SqliteOptions {
  /**
   * `full` flushes every commit, so that an acknowledged job survives the loss of power; `relaxed` may lose the newest
   * commits with the power (never with the process). Defaults to 'full'.
   */
  readonly durability?: Durability
  /** Makes and upgrades the tables with the first use. Defaults to true. */
  readonly migrate?: boolean
  /** How long a call waits for another process's write lock, milliseconds. Defaults to 5,000. */
  readonly busyDeadlineMs?: number
  /** Defaults to better-sqlite3. */
  readonly driver?: SqliteDriver
}

const defaultBusyDeadlineMs = 5_000

/**
 * A storage in the file at `path`, which must be on a local disk; `:memory:` keeps the jobs in this process. Costs
 * nothing until it is used.
 *
 * @example
 * const chokaq = createChokaQ({ storage: sqlite('./jobs.db') })
 */
export function sqlite(path: string, options: SqliteOptions = {}): Storage {
  const isMemory = path === memoryPath
  const capabilities: StorageCapabilities = {
    supportsListen: false,
    sharedByMachines: false,
    // No other handle reaches a database in memory.
    supportsSyncTransactions: !isMemory,
    supportsAsyncTransactions: false,
  }
  const {
    durability = 'full',
    migrate = true,
    busyDeadlineMs = defaultBusyDeadlineMs,
    driver = betterSqlite3,
  } = options
  return {
    capabilities,
    location: path,
    open: (runtime) =>
      new SqliteStorageDriver({ path, durability, migrate, busyDeadlineMs, driver, capabilities, runtime }),
  }
}
