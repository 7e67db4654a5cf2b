// K26 on SQLite, whose database is one file: it cannot be written, is full, or is not what it was. Clear errors, and nothing
// invented. A server breaks in other ways: test/postgres/outages.test.ts.
import { chmodSync, copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { ChokaQError, createChokaQ, hasCode, type ChokaQ } from 'chokaq'
import { sqlite, type SqliteDatabase } from 'chokaq/sqlite'
import { betterSqlite3 } from '../../src/storage/sqlite/database.ts'
import { partsOf } from '../../src/engine/parts.ts'
import { contracts } from './fixtures/jobs.ts'
import { sqliteFile } from './storages.ts'
import { allOf } from './snapshot.ts'

const cleanups: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function newFile(): Promise<string> {
  const database = await sqliteFile.create()
  cleanups.push(() => database.remove())
  return join(database.folder, 'jobs.db')
}

function open(path: string, onOpen: (db: SqliteDatabase) => void = () => undefined): ChokaQ {
  const driver = {
    ...betterSqlite3,
    open(at: string) {
      const db = betterSqlite3.open(at)
      onOpen(db)
      return db
    },
  }
  const chokaq = createChokaQ({ storage: sqlite(path, { driver, busyDeadlineMs: 100 }), enqueueDeadline: 300 })
  cleanups.push(() => chokaq.close())
  return chokaq
}

/** The code of what a call throws; 'none' where it does not. */
async function codeOf(call: Promise<unknown>): Promise<string> {
  const thrown = await call.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (thrown === undefined) return 'none'
  return thrown instanceof ChokaQError ? (thrown as ChokaQError).code : 'no error of ChokaQ'
}

async function storedOps(chokaq: ChokaQ): Promise<readonly string[]> {
  const jobs = await allOf(partsOf(chokaq).driver, 'hot')
  return jobs.map(({ payload }) => (JSON.parse(payload ?? '{}') as { op: string }).op).sort()
}

/** A file with jobs a and b, whose process is gone without a checkpoint: the newest commits are in the log alone. */
async function abandonedFile(): Promise<string> {
  const path = await newFile()
  const chokaq = open(path)
  await chokaq.enqueue(contracts.none, { op: 'a' })
  await chokaq.enqueue(contracts.none, { op: 'b' })
  const copy = await newFile()
  for (const end of ['', '-wal']) copyFileSync(path + end, copy + end)
  return copy
}

describe('K26 a file that fails', () => {
  test('a full file refuses the job with CHOKAQ_STORAGE_FULL, keeps what it has, and goes on when there is room', async () => {
    const opened: SqliteDatabase[] = []
    const chokaq = open(await newFile(), (db) => opened.push(db))
    await chokaq.enqueue(contracts.none, { op: 'a' })
    opened[0]?.exec('PRAGMA max_page_count = 1')
    const big = 'x'.repeat(500_000)
    expect(await codeOf(chokaq.enqueue(contracts.none, { op: 'b', data: big }))).toBe('CHOKAQ_STORAGE_FULL')
    expect(await storedOps(chokaq)).toEqual(['a'])
    opened[0]?.exec('PRAGMA max_page_count = 100000')
    await chokaq.enqueue(contracts.none, { op: 'c', data: big })
    expect(await storedOps(chokaq)).toEqual(['a', 'c'])
  })

  test.skipIf(process.getuid?.() === 0)('a file that may not be written is refused with its path', async () => {
    const path = await abandonedFile()
    chmodSync(path, 0o444)
    cleanups.push(async () => chmodSync(path, 0o644))
    const chokaq = open(path)
    expect(await codeOf(chokaq.enqueue(contracts.none, { op: 'c' }))).toBe('CHOKAQ_STORAGE_READ_ONLY')
  })

  test('a connection that may only read says so, and writes nothing', async () => {
    const path = await abandonedFile()
    const chokaq = open(path)
    await chokaq.ready()
    const readOnly = open(path, (db) => db.exec('PRAGMA query_only = 1'))
    expect(await codeOf(readOnly.enqueue(contracts.none, { op: 'c' }))).toBe('CHOKAQ_STORAGE_READ_ONLY')
    expect(await storedOps(chokaq)).toEqual(['a', 'b'])
  })

  test('a damaged file is refused and left as it is', async () => {
    const path = await abandonedFile()
    rmSync(`${path}-wal`)
    writeFileSync(path, Buffer.alloc(64 * 1024, 0xa5))
    const before = readFileSync(path)
    const chokaq = open(path)
    expect(await codeOf(chokaq.enqueue(contracts.none, { op: 'c' }))).toBe('CHOKAQ_STORAGE_CORRUPT')
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  test('damaged pages are an error of the call that meets them, never a job that was not sent', async () => {
    const path = await newFile()
    const writer = open(path)
    for (let i = 0; i < 40; i += 1) await writer.enqueue(contracts.none, { op: `job-${i}`, data: 'y'.repeat(2_000) })
    await writer.close()
    const bytes = readFileSync(path)
    bytes.fill(0xa5, Math.floor(bytes.length / 2))
    writeFileSync(path, bytes)
    const chokaq = open(path)
    const answer = await storedOps(chokaq).then(
      (ops) => ops.filter((op) => !/^job-\d+$/.test(op)),
      (error: unknown) => (hasCode(error, 'CHOKAQ_STORAGE_CORRUPT') ? [] : [String(error)]),
    )
    expect(answer).toEqual([])
  })

  test('a log that is gone loses its newest commits and no more; the file is sound', async () => {
    const path = await abandonedFile()
    rmSync(`${path}-wal`)
    const chokaq = open(path)
    expect(await codeOf(chokaq.enqueue(contracts.none, { op: 'c' }))).toBe('none')
    expect(await storedOps(chokaq)).toEqual(['c'])
  })

  test('a log that is overwritten in the middle gives a prefix of its commits, and nothing else', async () => {
    const path = await abandonedFile()
    const log = readFileSync(`${path}-wal`)
    log.fill(0x5a, Math.floor(log.length * 0.9))
    writeFileSync(`${path}-wal`, log)
    const chokaq = open(path)
    expect(await codeOf(chokaq.enqueue(contracts.none, { op: 'c' }))).toBe('none')
    const ops = await storedOps(chokaq)
    expect([['c'], ['a', 'c'], ['a', 'b', 'c']]).toContainEqual(ops)
  })
})
