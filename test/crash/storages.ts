// The storages whose crashes are tested. Another one joins with a row here and a line in fixtures/open-storage.ts.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openUserDatabase } from './fixtures/handlers.ts'
import type { UserRow } from './snapshot.ts'

export interface CrashDatabase {
  /** What fixtures/open-storage.ts opens. */
  readonly url: string
  /** For histories and gates. */
  readonly folder: string
  /** What handlers and producers wrote into the application's own table. */
  userRows(): readonly UserRow[]
  /** What the database itself says of its health; empty where all is well. */
  damage(): readonly string[]
  /** Stops every writer until the returned function is called. */
  holdLock(): () => void
  remove(): void
}

export interface CrashStorage {
  readonly name: string
  create(): CrashDatabase
}

/** Memory that looks like a disk, where there is any: a SIGKILL loses no page of the kernel's. */
const fastFolder = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

const sqliteFile: CrashStorage = {
  name: 'SQLite',
  create() {
    const folder = mkdtempSync(join(fastFolder, 'chokaq-crash-'))
    const url = `sqlite:${join(folder, 'jobs.db')}`
    return {
      url,
      folder,
      userRows() {
        const db = openUserDatabase(url)
        const rows = db.prepare('SELECT op, job FROM crash_effects').all() as UserRow[]
        db.close()
        return rows
      },
      damage() {
        const db = openUserDatabase(url)
        const found = db.pragma('integrity_check') as { readonly integrity_check: string }[]
        db.close()
        return found.map((row) => row.integrity_check).filter((text) => text !== 'ok')
      },
      holdLock() {
        const db = openUserDatabase(url)
        db.exec('BEGIN IMMEDIATE')
        return () => void db.exec('ROLLBACK').close()
      },
      remove() {
        rmSync(folder, { recursive: true, force: true })
      },
    }
  },
}

export const crashStorages: readonly CrashStorage[] = [sqliteFile]
