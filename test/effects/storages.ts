// The storages whose kill matrix is run: a database of its own for each cell, named by a URL that processes are given.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqliteFile } from '../crash/storages.ts'
import { createDatabase } from '../postgres/database.ts'

export interface EffectDatabase {
  /** What fixtures/open-storage.ts of test/crash opens. */
  readonly url: string
  /** For acts of the provider, and for signs between processes. */
  readonly folder: string
  remove(): Promise<void>
}

export interface EffectStorage {
  readonly name: string
  create(): Promise<EffectDatabase>
}

/** On the shared server of a test run, or on that of `serverFolder`. */
function postgresServer(serverFolder?: string): EffectStorage {
  return {
    name: 'PostgreSQL',
    async create() {
      const database = await createDatabase(serverFolder === undefined ? {} : { folder: serverFolder })
      const folder = mkdtempSync(join(tmpdir(), 'chokaq-effects-'))
      return {
        url: database.url,
        folder,
        async remove() {
          await database.drop()
          rmSync(folder, { recursive: true, force: true })
        },
      }
    },
  }
}

export function effectStorages(serverFolder?: string): readonly EffectStorage[] {
  return [sqliteFile, postgresServer(serverFolder)]
}
