/**
 * The small seam between the storage and a SQLite driver: what every synchronous driver can do, and nothing else. Today
 * better-sqlite3 stands behind it; `node:sqlite` has the same shape and fits later. A handle of the user's own
 * (`enqueueSync`, `completeSync`) is wrapped in the same interface, so that one set of statements serves both.
 */
import { createRequire } from 'node:module'
import { ChokaQError } from '../../core/errors.ts'

/** What may be bound. Booleans and undefined are no SQLite values: write 0, 1 and null. */
export type SqlValue = string | number | bigint | null

export interface SqliteStatement<Row> {
  run(...values: readonly SqlValue[]): { readonly changes: number | bigint }
  get(...values: readonly SqlValue[]): Row | undefined
  /** Every row at once: an iterator left open would pin the file's snapshot and stop checkpoints. */
  all(...values: readonly SqlValue[]): readonly Row[]
}

export interface SqliteDatabase {
  prepare<Row>(sql: string): SqliteStatement<Row>
  /** Rows come as arrays of their columns, which costs half as much as objects where there are many columns. */
  prepareTuples<Row extends readonly SqlValue[]>(sql: string): SqliteStatement<Row>
  /** Runs several statements without values. */
  exec(sql: string): void
  readonly inTransaction: boolean
  /** The driver's own handle: what a handler's transaction gets. */
  readonly handle: unknown
  close(): void
}

export interface SqliteDriver {
  readonly packageName: string
  open(path: string): SqliteDatabase
}

/** A database handle as better-sqlite3 gives it, as far as it is used here. */
export interface BetterSqlite3Handle {
  prepare(sql: string): unknown
  exec(sql: string): unknown
  readonly inTransaction: boolean
  close?(): unknown
}

interface BetterSqlite3Statement<Row> extends SqliteStatement<Row> {
  safeIntegers(toggle: boolean): this
  raw(toggle: boolean): this
}

type BetterSqlite3 = new (path: string, options: { readonly timeout: number }) => BetterSqlite3Handle

/** Whether a value looks like a handle of better-sqlite3: by what it can do, because the package may be there twice. */
export function isBetterSqlite3Handle(value: unknown): value is BetterSqlite3Handle {
  if (typeof value !== 'object' || value === null) return false
  const { prepare, exec, inTransaction } = value as Partial<BetterSqlite3Handle>
  return typeof prepare === 'function' && typeof exec === 'function' && typeof inTransaction === 'boolean'
}

export function wrapBetterSqlite3(handle: BetterSqlite3Handle): SqliteDatabase {
  // The user's handle may read integers as BigInt by default. The statements themselves are not wrapped: the hot paths
  // call them a million times a minute.
  const prepare = <Row>(sql: string): BetterSqlite3Statement<Row> =>
    (handle.prepare(sql) as BetterSqlite3Statement<Row>).safeIntegers(false)
  return {
    prepare,
    handle,
    prepareTuples: (sql) => prepare<never>(sql).raw(true),
    exec: (sql) => void handle.exec(sql),
    get inTransaction() {
      return handle.inTransaction
    },
    close: () => void handle.close?.(),
  }
}

/** Loaded with the first use, so that a producer of another storage never needs the package. */
export const betterSqlite3: SqliteDriver = {
  packageName: 'better-sqlite3',
  open(path) {
    // A busy timeout would block the event loop; the storage waits asynchronously instead.
    return wrapBetterSqlite3(new (loadBetterSqlite3())(path, { timeout: 0 }))
  },
}

function loadBetterSqlite3(): BetterSqlite3 {
  try {
    return createRequire(import.meta.url)('better-sqlite3') as BetterSqlite3
  } catch (cause) {
    throw new ChokaQError('CHOKAQ_DRIVER_MISSING', { packageName: 'better-sqlite3' }, { cause })
  }
}
