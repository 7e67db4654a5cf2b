/** From `--db` or CHOKAQ_DATABASE_URL to a storage. The one place that knows which kinds of storage there are. */
import { statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { ClientOptions } from '../core/config.ts'
import type { Storage } from '../core/storage.ts'
import { createChokaQ, type ChokaQ } from '../engine/enqueue/client.ts'
import { postgres } from '../storage/postgres/index.ts'
import { sqlite } from '../storage/sqlite/index.ts'
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
}

const inMemory = ':memory:'

export function storageFor(io: CliIo, options: DatabaseOptions, presence: Presence): Storage {
  const fromEnvironment = io.env[databaseVariable]
  const location =
    options.db ?? (fromEnvironment === undefined || fromEnvironment === '' ? defaultLocation : fromEnvironment)
  const migrate = presence === 'may-be-new'
  if (/^postgres(ql)?:/i.test(location)) return postgres(location, { migrate })
  const path = sqlitePath(location)
  if (path === inMemory) return sqlite(inMemory, { migrate })
  const file = resolve(io.cwd, path)
  checkFile(file, presence)
  return sqlite(file, { migrate })
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
