// The storages under which every engine test runs. A new one joins by adding a row here.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Storage } from 'chokaq'
import { sqlite } from 'chokaq/sqlite'
import { postgresOnServer } from './postgres-storage.ts'

export interface OpenedStorage {
  /** Opened twice, it is two clients of the same data where `isShared` says so. */
  readonly storage: Storage
  /** The file, where there is one. */
  readonly path: string
  remove(): void
}

export interface StorageCase {
  readonly name: string
  /** A second client sees the same data. */
  readonly isShared: boolean
  /** How virtual time lets it catch up; left out where one turn of the host's loop is enough. */
  readonly yieldToHost?: () => Promise<void>
  open(): OpenedStorage
}

/** Memory that looks like a disk, where there is any: nothing here tests the loss of power. */
const fastFolder = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

export const sqliteInMemory: StorageCase = {
  name: 'sqlite in memory',
  isShared: false,
  open: () => ({ storage: sqlite(':memory:'), path: ':memory:', remove: () => undefined }),
}

export const sqliteOnFile: StorageCase = {
  name: 'sqlite on a file',
  isShared: true,
  open() {
    const folder = mkdtempSync(join(fastFolder, 'chokaq-engine-'))
    const path = join(folder, 'jobs.db')
    const remove = (): void => {
      rmSync(folder, { recursive: true, force: true })
    }
    return { storage: sqlite(path), path, remove }
  },
}

export const storages: readonly StorageCase[] = [sqliteInMemory, sqliteOnFile, await postgresOnServer()]
export const sharedStorages: readonly StorageCase[] = storages.filter(({ isShared }) => isShared)
