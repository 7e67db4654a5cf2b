// One fresh SQLite storage for each case, in memory or in a file of its own.
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqlite, type SqliteDatabase } from 'chokaq/sqlite'
import type { ConformanceHarness, ConformanceSubject, FakeRuntime, PlantedMarker } from 'chokaq/testing'
import { describe, expect, test } from 'vitest'
import { betterSqlite3 } from '../../src/storage/sqlite/database.ts'

/** Memory that looks like a disk, where there is any: nothing here tests the loss of power. */
const fastFolder = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

const insertMarker = `INSERT INTO chokaq_idempotency_markers
    (key_hash, state, job_id, generation, token, created_at, expires_at, fingerprint, result, failure)
  VALUES (?, ?, ?, ?, 0, ?, ?, ?, ?, ?)`

async function openAt(
  path: string,
  runtime: FakeRuntime,
  removeFiles: () => Promise<void>,
): Promise<ConformanceSubject> {
  const opened: SqliteDatabase[] = []
  const driver = {
    ...betterSqlite3,
    open(file: string) {
      const db = betterSqlite3.open(file)
      opened.push(db)
      return db
    },
  }
  const storage = sqlite(path, { driver, durability: 'relaxed' })
  const drivers = [storage.open(runtime)]
  const [first] = drivers as [(typeof drivers)[number]]
  const second = async () => {
    const other = storage.open(runtime.forProcess({ pid: 2000 }))
    drivers.push(other)
    return other
  }
  return {
    driver: first,
    ...(path === ':memory:' ? {} : { second }),
    async plantMarker(marker: PlantedMarker) {
      const { keyHash, state, jobId, generation, fingerprint, result, failure, expiresAtMs } = marker
      const [db] = opened
      const failureText = failure === null ? null : JSON.stringify(failure)
      const values = [runtime.clock.nowMs(), expiresAtMs ?? null, fingerprint, result, failureText] as const
      db?.prepare(insertMarker).run(keyHash, state, jobId, generation, ...values)
    },
    async cleanup() {
      for (const each of drivers) await each.close()
      await removeFiles()
    },
  }
}

export function inMemory(): ConformanceHarness {
  const create = (runtime: FakeRuntime): Promise<ConformanceSubject> =>
    openAt(':memory:', runtime, async () => undefined)
  return { name: 'SQLite in memory', api: { describe, test, expect }, create }
}

export function inFile(): ConformanceHarness {
  return {
    name: 'SQLite in a file',
    api: { describe, test, expect },
    async create(runtime) {
      const folder = await mkdtemp(join(fastFolder, 'chokaq-conformance-'))
      return openAt(join(folder, 'jobs.db'), runtime, () => rm(folder, { recursive: true, force: true }))
    },
  }
}
