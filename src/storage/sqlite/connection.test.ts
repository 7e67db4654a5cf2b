import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { openStorage, scratchPath, spyDriver, userHandle } from '../../../test/storage/scratch-sqlite.ts'
import { newJob } from '../../testing/conformance/new-job.ts'
import { createFakeRuntime } from '../../testing/fake-runtime.ts'
import { wrapBetterSqlite3 } from './database.ts'
import { migrations } from './migrations.ts'

const runtime = createFakeRuntime()

function pragma(db: ReturnType<typeof spyDriver>['opened'][number] | undefined, name: string): unknown {
  return db?.prepare<Record<string, unknown>>(`PRAGMA ${name}`).get()?.[name]
}

describe('opening a file', () => {
  it('touches nothing before the first use', async () => {
    const path = scratchPath()
    const storage = openStorage(path, runtime)
    expect(existsSync(path)).toBe(false)
    await storage.ready()
    expect(existsSync(path)).toBe(true)
  })

  it('flushes every commit by default and keeps a log', async () => {
    const driver = spyDriver()
    await openStorage(scratchPath(), runtime, { driver }).ready()
    const [db] = driver.opened
    expect(pragma(db, 'journal_mode')).toBe('wal')
    expect(pragma(db, 'synchronous')).toBe(2)
    expect(pragma(db, 'journal_size_limit')).toBe(64 * 1024 * 1024)
    expect(db?.prepare<{ timeout: number }>('PRAGMA busy_timeout').get()?.timeout).toBe(0)
  })

  it('flushes less where durability is relaxed', async () => {
    const driver = spyDriver()
    await openStorage(scratchPath(), runtime, { driver, durability: 'relaxed' }).ready()
    expect(pragma(driver.opened[0], 'synchronous')).toBe(1)
  })

  it('sets synchronous again on a file that is reopened', async () => {
    const path = scratchPath()
    const first = openStorage(path, runtime)
    await first.ready()
    await first.close()
    const driver = spyDriver()
    await openStorage(path, runtime, { driver }).ready()
    expect(pragma(driver.opened[0], 'synchronous')).toBe(2)
  })

  it('refuses a connection that does not take the level it asked for', async () => {
    const driver = spyDriver((path) => {
      const db = wrapBetterSqlite3(new Database(path))
      return {
        prepare: (sql) => db.prepare(sql),
        prepareTuples: (sql) => db.prepareTuples(sql),
        exec: (sql) => {
          if (!sql.startsWith('PRAGMA synchronous')) db.exec(sql)
          else db.exec('PRAGMA synchronous = OFF')
        },
        inTransaction: false,
        handle: undefined,
        close: () => db.close(),
      }
    })
    const opening = openStorage(scratchPath(), runtime, { driver }).ready()
    await expect(opening).rejects.toMatchObject({ code: 'CHOKAQ_NOT_DURABLE', details: { found: 'OFF' } })
  })

  it('says which folder is missing', async () => {
    const path = join(dirname(scratchPath()), 'missing', 'jobs.db')
    const opening = openStorage(path, runtime).ready()
    await expect(opening).rejects.toMatchObject({ code: 'CHOKAQ_CONFIG_INVALID' })
    await expect(opening).rejects.toThrow(dirname(path))
  })

  it('can be tried again after a failure', async () => {
    let attempts = 0
    const path = scratchPath()
    const driver = spyDriver((file) => {
      attempts += 1
      if (attempts === 1) throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR' })
      return wrapBetterSqlite3(new Database(file))
    })
    const storage = openStorage(path, runtime, { driver })
    await expect(storage.ready()).rejects.toMatchObject({ code: 'CHOKAQ_STORAGE_FAILED' })
    await storage.ready()
    expect(attempts).toBe(2)
  })
})

describe('whose file it is', () => {
  it('marks a file it made', async () => {
    const path = scratchPath()
    await openStorage(path, runtime).ready()
    expect(userHandle(path).pragma('application_id', { simple: true })).toBe(0x43484b51)
  })

  it('shares a file with the application and leaves its application_id and user_version', async () => {
    const path = scratchPath()
    const app = userHandle(path)
    app.exec('PRAGMA application_id = 77; PRAGMA user_version = 5; CREATE TABLE orders (id INTEGER)')
    const storage = openStorage(path, runtime)
    await storage.enqueue([newJob(runtime)])
    expect(app.pragma('application_id', { simple: true })).toBe(77)
    expect(app.pragma('user_version', { simple: true })).toBe(5)
    expect(app.prepare('SELECT count(*) AS n FROM chokaq_jobs_hot').get()).toEqual({ n: 1 })
  })

  it('refuses tables of its name that it did not make', async () => {
    const path = scratchPath()
    userHandle(path).exec('CREATE TABLE chokaq_jobs (id INTEGER)')
    const before = readFileSync(path)
    const opening = openStorage(path, runtime).ready()
    await expect(opening).rejects.toMatchObject({ code: 'CHOKAQ_STORAGE_FOREIGN' })
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  it('refuses a migrations table with other columns', async () => {
    const path = scratchPath()
    userHandle(path).exec('CREATE TABLE chokaq_migrations (id INTEGER, run_on TEXT)')
    await expect(openStorage(path, runtime).ready()).rejects.toMatchObject({ code: 'CHOKAQ_STORAGE_FOREIGN' })
  })

  it('refuses what is no database and leaves it as it is', async () => {
    const path = scratchPath('notes.txt')
    const text = 'These are my notes, and no database at all. '.repeat(100)
    writeFileSync(path, text)
    const opening = openStorage(path, runtime).ready()
    await expect(opening).rejects.toMatchObject({ code: 'CHOKAQ_STORAGE_CORRUPT' })
    await expect(opening).rejects.toThrow('left as it is')
    expect(readFileSync(path, 'utf8')).toBe(text)
  })

  it('refuses a damaged schema page with a text', async () => {
    const path = scratchPath()
    const storage = openStorage(path, runtime)
    await storage.enqueue([newJob(runtime)])
    await storage.close()
    const bytes = readFileSync(path)
    bytes.fill(0xff, 100, 3000)
    writeFileSync(path, bytes)
    await expect(openStorage(path, runtime).ready()).rejects.toMatchObject({ code: 'CHOKAQ_STORAGE_CORRUPT' })
  })
})

describe('the schema', () => {
  it('refuses one of a newer version, and changes nothing', async () => {
    const path = scratchPath()
    const first = openStorage(path, runtime)
    await first.ready()
    await first.close()
    userHandle(path).exec(`INSERT INTO chokaq_migrations VALUES (99, 'from the future', 0)`)
    await expect(openStorage(path, runtime).ready()).rejects.toMatchObject({
      code: 'CHOKAQ_SCHEMA_NEWER',
      details: { found: 99 },
    })
  })

  it('is not made where migrate is false, nor is the file', async () => {
    const path = scratchPath()
    const opening = openStorage(path, runtime, { migrate: false }).ready()
    await expect(opening).rejects.toMatchObject({ code: 'CHOKAQ_SCHEMA_MISSING' })
    expect(existsSync(path)).toBe(false)
  })

  it('is used as it is where migrate is false and the tables stand', async () => {
    const path = scratchPath()
    await openStorage(path, runtime).ready()
    const second = openStorage(path, runtime, { migrate: false })
    expect(await second.enqueue([newJob(runtime)])).toEqual([{ kind: 'inserted' }])
  })

  it('leaves nothing of a migration that dies in the middle, and is made by the next start', async () => {
    const path = scratchPath()
    const dying = createFakeRuntime()
    dying.faults.failAt('migration-step', 1, () => {
      throw new RangeError('the process died')
    })
    await expect(openStorage(path, dying).ready()).rejects.toThrow('the process died')
    const handle = userHandle(path)
    expect(handle.prepare('SELECT count(*) AS n FROM sqlite_master').get()).toEqual({ n: 0 })
    await openStorage(path, runtime).ready()
    expect(handle.prepare('SELECT version, name FROM chokaq_migrations').all()).toEqual(
      migrations.map(({ version, name }) => ({ version, name })),
    )
  })
})

describe('a database that cannot be written', () => {
  it('says that it is read-only, and still reads', async () => {
    const path = scratchPath()
    const job = newJob(runtime)
    await openStorage(path, runtime).enqueue([job])
    const driver = spyDriver((file) => wrapBetterSqlite3(new Database(file, { readonly: true, timeout: 0 })))
    const storage = openStorage(path, runtime, { driver })
    await expect(storage.enqueue([newJob(runtime)])).rejects.toMatchObject({ code: 'CHOKAQ_STORAGE_READ_ONLY' })
    expect(await storage.inspector.get(job.id)).toMatchObject({ state: 'pending' })
  })

  it('says that it is full, loses nothing, and goes on when there is space', async () => {
    const driver = spyDriver()
    const storage = openStorage(scratchPath(), runtime, { driver })
    const kept = newJob(runtime)
    await storage.enqueue([kept])
    const [db] = driver.opened
    const pages = Number(pragma(db, 'page_count'))
    db?.exec(`PRAGMA max_page_count = ${pages + 1}`)
    const large = Array.from({ length: 100 }, () => newJob(runtime, { payload: JSON.stringify('x'.repeat(5_000)) }))
    await expect(storage.enqueue(large)).rejects.toMatchObject({ code: 'CHOKAQ_STORAGE_FULL' })
    expect(await storage.inspector.get(kept.id)).toMatchObject({ state: 'pending' })
    db?.exec('PRAGMA max_page_count = 1000000')
    expect((await storage.enqueue(large)).every(({ kind }) => kind === 'inserted')).toBe(true)
  })
})
