// The storages whose crashes are tested. Another one joins with a row here and a line in fixtures/open-storage.ts.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { createDatabase, type TestDatabase } from '../postgres/database.ts'
import { createUserTable } from './fixtures/user-postgres.ts'
import { openUserFile } from './fixtures/user-sqlite.ts'
import type { UserRow } from './snapshot.ts'
import { until } from './until.ts'

export interface CrashDatabase {
  /** What fixtures/open-storage.ts opens. */
  readonly url: string
  /** For histories and gates. */
  readonly folder: string
  /** What handlers and producers wrote into the application's own table. */
  userRows(): Promise<readonly UserRow[]>
  /** What the database itself says of its health; empty where all is well. */
  damage(): Promise<readonly string[]>
  /** No worker can be heard until the returned function is called. */
  holdLock(): Promise<() => Promise<void>>
  /** The tables of the storage's own, by name. */
  tables(): Promise<readonly string[]>
  remove(): Promise<void>
}

export interface CrashDatabaseOptions {
  /** Without any table: for deaths while they are made. */
  readonly isEmpty?: boolean
  /** A folder for the data itself, instead of where it is fast. */
  readonly disk?: string
}

export interface CrashStorage {
  readonly name: string
  create(options?: CrashDatabaseOptions): Promise<CrashDatabase>
}

/** Memory that looks like a disk, where there is any: a SIGKILL loses no page of the kernel's. */
const fastFolder = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

function newFolder(parent = fastFolder): string {
  return mkdtempSync(join(parent, 'chokaq-crash-'))
}

export const sqliteFile: CrashStorage = {
  name: 'SQLite',
  async create(options = {}) {
    const folder = newFolder(options.disk)
    const url = `sqlite:${join(folder, 'jobs.db')}`
    return {
      url,
      folder,
      async userRows() {
        const db = openUserFile(url)
        const rows = db.prepare('SELECT op, job FROM crash_effects').all() as UserRow[]
        db.close()
        return rows
      },
      async damage() {
        const db = openUserFile(url)
        const found = db.pragma('integrity_check') as { readonly integrity_check: string }[]
        db.close()
        return found.map((row) => row.integrity_check).filter((text) => text !== 'ok')
      },
      async holdLock() {
        const db = openUserFile(url)
        db.exec('BEGIN IMMEDIATE')
        return async () => void db.exec('ROLLBACK').close()
      },
      async tables() {
        const db = openUserFile(url)
        const rows = db.prepare("SELECT name FROM sqlite_master WHERE name LIKE 'chokaq%' AND type = 'table'").all()
        db.close()
        return (rows as { readonly name: string }[]).map(({ name }) => name)
      },
      async remove() {
        rmSync(folder, { recursive: true, force: true })
      },
    }
  },
}

async function openTransactions(database: TestDatabase): Promise<readonly string[]> {
  const left = await database.query<{ readonly application_name: string; readonly query: string }>(
    `SELECT application_name, query FROM pg_stat_activity WHERE datname = current_database()
      AND state LIKE 'idle in transaction%'`,
  )
  return left.map((row) => `a transaction of "${row.application_name}" is still open after: ${row.query}`)
}

export interface PostgresServerOptions {
  /** Where the server of the run keeps its files; without it, the server is that of the tests. */
  readonly folder?: string | undefined
  /** How long a transaction may be left open: the end of a process can be ahead of its backend's. */
  readonly openForMs?: number
}

/** A database on the server of the run. */
export function postgresServer({ folder: serverFolder, openForMs = 5_000 }: PostgresServerOptions = {}): CrashStorage {
  return {
    name: 'PostgreSQL',
    async create(options = {}) {
      const where = serverFolder === undefined ? {} : { folder: serverFolder }
      const database = await createDatabase({ ...options, ...where })
      await database.query(createUserTable)
      const folder = newFolder()
      return {
        url: database.url,
        folder,
        userRows: () => database.query<UserRow>('SELECT op, job FROM public.crash_effects'),
        // Its pages are the server's own business; what a process that died can leave behind are locks and transactions.
        async damage() {
          const giveUpMs = performance.now() + openForMs
          return until('open transactions to end', 2 * openForMs, async () => {
            const left = await openTransactions(database)
            return left.length === 0 || performance.now() >= giveUpMs ? left : undefined
          })
        },
        async holdLock() {
          const client = new pg.Client({ connectionString: database.url })
          await client.connect()
          await client.query('BEGIN; LOCK TABLE chokaq.workers IN ACCESS EXCLUSIVE MODE')
          return () => client.end()
        },
        async tables() {
          const rows = await database.query<{ readonly name: string }>(
            "SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = to_regnamespace('chokaq')",
          )
          return rows.map(({ name }) => name)
        },
        async remove() {
          await database.drop()
          rmSync(folder, { recursive: true, force: true })
        },
      }
    },
  }
}

export function crashStorages(serverFolder?: string): readonly CrashStorage[] {
  return [sqliteFile, postgresServer({ folder: serverFolder })]
}
