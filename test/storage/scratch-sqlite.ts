// Files, handles and storages that end with the test that made them.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { sqlite, type SqliteDatabase, type SqliteDriver, type SqliteOptions } from 'chokaq/sqlite'
import { onTestFinished } from 'vitest'
import type { Runtime } from '../../src/core/runtime.ts'
import type { StorageDriver } from '../../src/core/storage.ts'
import { betterSqlite3 } from '../../src/storage/sqlite/database.ts'

/** A path in a fresh folder. */
export function scratchPath(name = 'jobs.db'): string {
  const folder = mkdtempSync(join(tmpdir(), 'chokaq-sqlite-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, name)
}

/** A handle as a user opens it. */
export function userHandle(path: string): Database.Database {
  const handle = new Database(path, { timeout: 0 })
  onTestFinished(() => void handle.close())
  return handle
}

export function openStorage(path: string, runtime: Runtime, options?: SqliteOptions): StorageDriver {
  const driver = sqlite(path, options).open(runtime)
  onTestFinished(() => driver.close())
  return driver
}

export interface SpyDriver extends SqliteDriver {
  /** What the storage opened, in order. */
  readonly opened: readonly SqliteDatabase[]
  /** Every statement it prepared. */
  readonly prepared: ReadonlySet<string>
}

/** The default driver, with a look at what the storage does with it. */
export function spyDriver(open: (path: string) => SqliteDatabase = (path) => betterSqlite3.open(path)): SpyDriver {
  const opened: SqliteDatabase[] = []
  const prepared = new Set<string>()
  return {
    packageName: betterSqlite3.packageName,
    opened,
    prepared,
    open(path) {
      const db = open(path)
      opened.push(db)
      return {
        prepare: (sql) => (prepared.add(sql), db.prepare(sql)),
        prepareTuples: (sql) => (prepared.add(sql), db.prepareTuples(sql)),
        exec: (sql) => db.exec(sql),
        handle: undefined,
        get inTransaction() {
          return db.inTransaction
        },
        close: () => db.close(),
      }
    },
  }
}
