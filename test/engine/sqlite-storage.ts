// SQLite under the engine's tests, in memory and in a file of its own.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqlite } from 'chokaq/sqlite'
import type { StorageCase } from './storage-case.ts'

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
