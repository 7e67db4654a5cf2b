/**
 * Opens a file so that an acknowledged job survives the loss of power, and refuses what is not ours before anything is
 * written to it.
 *
 * The file is identified by the table `chokaq_migrations` and may be shared with the application's own tables. What is
 * refused: no database at all, a damaged one, tables named `chokaq_…` that ChokaQ did not make, and a schema of a newer
 * version. `application_id` is set only on a file that did not exist before.
 */
import { existsSync, realpathSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { ChokaQError } from '../../core/errors.ts'
import type { Runtime } from '../../core/runtime.ts'
import { type Migration, pendingMigrations } from '../migration.ts'
import type { SqliteDatabase, SqliteDriver } from './database.ts'
import { migrations } from './migrations.ts'

export type Durability = 'full' | 'relaxed'

export interface ConnectionOptions {
  readonly path: string
  readonly durability: Durability
  readonly migrate: boolean
  readonly driver: SqliteDriver
  readonly runtime: Runtime
}

export const memoryPath = ':memory:'
/** 'CHKQ': tools such as `file` show it. */
const applicationId = 0x43484b51
/** The write-ahead log shrinks to this size after a checkpoint, whatever a burst made of it. */
const maxIdleLogBytes = 64 * 1024 * 1024
/**
 * Rows with keys change pages all over the file, and each checkpoint writes such pages back one by one and waits for the
 * disk. Eight times SQLite's default lets them gather: keyed jobs went 1.1 to 2 times as fast, the longest pause of the
 * event loop did not grow, and a log of 32 MB is still read back in well under a second after a crash.
 */
const checkpointPages = 8_000
/** Keys land all over their index; twice the driver's default keeps the pages of a few hundred thousand in memory. */
const cacheKilobytes = 32_000
const synchronousLevels = ['OFF', 'NORMAL', 'FULL', 'EXTRA'] as const
export const fullSynchronous = 2

/** Synchronous, and so repeatable as a whole: a lock in the way throws the driver's busy error. */
export function openConnection(options: ConnectionOptions): SqliteDatabase {
  const { path, driver, migrate } = options
  const isNew = !hasContent(path)
  if (path !== memoryPath) refuseMissingFolder(path)
  if (isNew && !migrate) throw new ChokaQError('CHOKAQ_SCHEMA_MISSING', { where: path })
  const db = openDriver(driver, path)
  try {
    db.exec('PRAGMA busy_timeout = 0')
    const found = schemaVersion(db, path)
    pendingMigrations(migrations, found)
    if (found < migrations.length && !migrate) {
      const where = found === 0 ? path : `${path} (schema version ${found} of ${migrations.length})`
      throw new ChokaQError('CHOKAQ_SCHEMA_MISSING', { where })
    }
    setPragmas(db, options)
    if (found < migrations.length) runMigrations(db, options, isNew)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** The version of the tables in a database; 0 where there are none. Throws where the tables are someone else's. */
export function schemaVersion(db: SqliteDatabase, path: string): number {
  const tables = db
    .prepare<{ readonly name: string }>(`SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'chokaq_*'`)
    .all()
    .map(({ name }) => name)
  if (tables.length === 0) return 0
  const foreign = (problem: string): ChokaQError => new ChokaQError('CHOKAQ_STORAGE_FOREIGN', { path, problem })
  if (!tables.includes('chokaq_migrations')) {
    throw foreign(`it has a table ${tables[0] ?? ''} but no chokaq_migrations`)
  }
  const columns = db.prepare<{ readonly name: string }>(`SELECT name FROM pragma_table_info('chokaq_migrations')`).all()
  if (columns.map(({ name }) => name).join() !== 'version,name,applied_at') {
    throw foreign('its table chokaq_migrations has other columns')
  }
  const row = db
    .prepare<{ readonly version: number | null }>('SELECT max(version) AS version FROM chokaq_migrations')
    .get()
  return row?.version ?? 0
}

/** Where a path leads, with links resolved, so that two handles on one file can be told. */
export function canonicalPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : resolve(path)
}

export function synchronousLevel(db: SqliteDatabase): number {
  return db.prepare<{ readonly synchronous: number }>('PRAGMA synchronous').get()?.synchronous ?? 0
}

export function synchronousName(level: number): string {
  return synchronousLevels[level] ?? String(level)
}

export function hasContent(path: string): boolean {
  return path !== memoryPath && existsSync(path) && statSync(path).size > 0
}

function refuseMissingFolder(path: string): void {
  const folder = dirname(resolve(path))
  if (existsSync(folder)) return
  throw new ChokaQError('CHOKAQ_CONFIG_INVALID', {
    problem: `the database ${path} cannot be opened, because the folder ${folder} does not exist. Create it first.`,
  })
}

export function openDriver(driver: SqliteDriver, path: string): SqliteDatabase {
  try {
    return driver.open(path)
  } catch (cause) {
    // An install without its build step leaves the package there and its native part missing.
    if (cause instanceof Error && /bindings file|\.node\b/.test(cause.message)) {
      throw new ChokaQError('CHOKAQ_DRIVER_MISSING', { packageName: driver.packageName }, { cause })
    }
    throw cause
  }
}

function setPragmas(db: SqliteDatabase, { path, durability }: ConnectionOptions): void {
  const mode = db.prepare<{ readonly journal_mode: string }>('PRAGMA journal_mode = WAL').get()?.journal_mode
  if (mode !== (path === memoryPath ? 'memory' : 'wal')) {
    throw new ChokaQError('CHOKAQ_STORAGE_FAILED', {
      problem: `${path} cannot use write-ahead logging (journal_mode is ${mode ?? 'unknown'}); put it on a local disk`,
    })
  }
  const wanted = durability === 'full' ? fullSynchronous : fullSynchronous - 1
  db.exec(`PRAGMA synchronous = ${synchronousName(wanted)}`)
  // Read back: a driver or a build of SQLite may have its own opinion.
  const found = synchronousLevel(db)
  if (found < wanted) throw new ChokaQError('CHOKAQ_NOT_DURABLE', { found: synchronousName(found) })
  db.exec(`PRAGMA journal_size_limit = ${maxIdleLogBytes}`)
  db.exec(`PRAGMA wal_autocheckpoint = ${checkpointPages}`)
  db.exec(`PRAGMA cache_size = -${cacheKilobytes}`)
}

/** Where the names of versions are kept. */
export const migrationsTable = `CREATE TABLE IF NOT EXISTS chokaq_migrations
  (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT`
/** Only on a file that ChokaQ made. */
export const markAsOwn = `PRAGMA application_id = ${applicationId}`

export function stepTexts({ version, name, sql }: Migration, nowMs: number): readonly string[] {
  const row = `${version}, '${name}', ${Math.floor(nowMs)}`
  return [`INSERT INTO chokaq_migrations (version, name, applied_at) VALUES (${row})`, sql]
}

/**
 * All steps in one transaction, and the version is written before the step: of two processes that start together, the
 * second finds the first one's work done, and a death in the middle leaves nothing behind.
 */
function runMigrations(db: SqliteDatabase, { path, runtime }: ConnectionOptions, isNew: boolean): void {
  db.exec('BEGIN IMMEDIATE')
  try {
    const found = schemaVersion(db, path)
    db.exec(migrationsTable)
    for (const migration of pendingMigrations(migrations, found)) {
      for (const text of stepTexts(migration, runtime.clock.nowMs())) db.exec(text)
      runtime.faults.reach('migration-step')
    }
    if (isNew && found === 0) db.exec(markAsOwn)
    db.exec('COMMIT')
  } catch (error) {
    if (db.inTransaction) db.exec('ROLLBACK')
    throw error
  }
}
