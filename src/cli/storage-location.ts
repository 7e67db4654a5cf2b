/** From `--db` or CHOKAQ_DATABASE_URL to a storage. The one place that knows which kinds of storage there are. */
import { statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { ClientOptions } from '../core/config.ts'
import type { Storage } from '../core/storage.ts'
import { createChokaQ, type ChokaQ } from '../engine/enqueue/client.ts'
import type { MigrationPlan } from '../storage/migration.ts'
import { postgres } from '../storage/postgres/index.ts'
import { planMigrations as planPostgres } from '../storage/postgres/plan.ts'
import { sqlite } from '../storage/sqlite/index.ts'
import { planMigrations as planSqlite } from '../storage/sqlite/plan.ts'
import { CliError } from './cli-error.ts'
import type { CliIo } from './io.ts'

export const databaseVariable = 'CHOKAQ_DATABASE_URL'
export const defaultLocation = './chokaq.db'

/**
 * `existing`: a command that only looks or acts must not make a database, or tables in somebody else's, where a path was
 * mistyped.
 */
export type Presence = 'existing' | 'may-be-new'

export interface DatabaseOptions {
  readonly db?: string
  /** Of PostgreSQL. */
  readonly schema?: string
}

const inMemory = ':memory:'

type Place = { readonly kind: 'postgres'; readonly url: string } | { readonly kind: 'sqlite'; readonly path: string }

export function storageFor(io: CliIo, options: DatabaseOptions, presence: Presence): Storage {
  const { schema } = options
  const migrate = presence === 'may-be-new'
  const place = placeOf(io, options, presence)
  if (place.kind === 'sqlite') return sqlite(place.path, { migrate })
  return postgres(place.url, { migrate, ...(schema === undefined ? {} : { schema }) })
}

/** What `migrate` would do there. Writes nothing. */
export async function planFor(io: CliIo, options: DatabaseOptions): Promise<MigrationPlan> {
  const place = placeOf(io, options, 'may-be-new')
  if (place.kind === 'sqlite') return planSqlite(place.path, Date.now())
  return planPostgres(place.url, options.schema === undefined ? {} : { schema: options.schema })
}

function placeOf(io: CliIo, options: DatabaseOptions, presence: Presence): Place {
  const fromEnvironment = io.env[databaseVariable]
  const location =
    options.db ?? (fromEnvironment === undefined || fromEnvironment === '' ? defaultLocation : fromEnvironment)
  if (/^postgres(ql)?:/i.test(location)) return { kind: 'postgres', url: location }
  const path = sqlitePath(location)
  if (options.schema !== undefined) {
    throw new CliError('CHOKAQ_CLI_USAGE', 'A SQLite file has no schemas. Leave --schema out, or name a server.')
  }
  if (path === inMemory) return { kind: 'sqlite', path: inMemory }
  const file = resolve(io.cwd, path)
  checkFile(file, presence)
  return { kind: 'sqlite', path: file }
}

function sqlitePath(location: string): string {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(location)?.[1]?.toLowerCase()
  // One letter is a drive on Windows. The location is not repeated: it may hold a password.
  if (
    scheme !== undefined &&
    scheme !== 'sqlite' &&
    scheme.length > 1 &&
    location.startsWith('//', scheme.length + 1)
  ) {
    throw new CliError(
      'CHOKAQ_CLI_STORAGE_UNSUPPORTED',
      `There is no storage for "${scheme}://". Give a SQLite file (--db ./chokaq.db) or a server (--db postgres://host/database).`,
    )
  }
  const path = location.replace(/^sqlite:(?:\/\/(?=\/|\.))?/i, '')
  if (path.trim() === '')
    throw new CliError('CHOKAQ_CLI_USAGE', `The database has no path. Give one: --db ./chokaq.db.`)
  return path
}

function checkFile(file: string, presence: Presence): void {
  const found = statSync(file, { throwIfNoEntry: false })
  if (found?.isDirectory() === true) {
    throw new CliError('CHOKAQ_CLI_NO_DATABASE', `${file} is a folder. Name a file in it with --db.`)
  }
  if (found !== undefined) return
  if (presence === 'existing') {
    throw new CliError(
      'CHOKAQ_CLI_NO_DATABASE',
      `There is no database at ${file}. Name it with --db or ${databaseVariable}; a worker or the first enqueue makes one.`,
    )
  }
  if (statSync(dirname(file), { throwIfNoEntry: false }) === undefined) {
    throw new CliError(
      'CHOKAQ_CLI_NO_DATABASE',
      `The folder of ${file} does not exist. Make it first, or name another file.`,
    )
  }
}

/** A client for the length of one command. */
export async function withClient<T>(
  io: CliIo,
  options: DatabaseOptions & { readonly client?: ClientOptions },
  presence: Presence,
  work: (chokaq: ChokaQ) => Promise<T>,
): Promise<T> {
  const chokaq = createChokaQ({ ...options.client, storage: storageFor(io, options, presence) })
  try {
    await chokaq.ready()
    return await work(chokaq)
  } finally {
    await chokaq.close()
  }
}
