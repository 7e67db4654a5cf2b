import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type BetterSqlite3 from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { postgres } from 'chokaq/postgres'
import { createNodeRuntime } from '../../src/engine/node-runtime.ts'
import { createDatabase } from '../postgres/database.ts'
import { cli, type CliResult } from './fake-io.ts'
import { openScene, type Scene } from './scene.ts'

const Database = createRequire(import.meta.url)('better-sqlite3') as typeof BetterSqlite3

let scene: Scene
beforeEach(async () => {
  scene = await openScene()
})
afterEach(() => scene.close())

const list = (db: string | undefined, env: Record<string, string> = {}): Promise<CliResult> =>
  cli(['queues', 'list', '--json', ...(db === undefined ? [] : ['--db', db])], { cwd: scene.cwd, env })

describe('where the database is', () => {
  it('is ./chokaq.db, CHOKAQ_DATABASE_URL or --db, the latter first', async () => {
    expect(await list(undefined)).toMatchObject({ code: 0 })
    expect(await list(undefined, { CHOKAQ_DATABASE_URL: '' })).toMatchObject({ code: 0 })
    expect(await list(undefined, { CHOKAQ_DATABASE_URL: 'other.db' })).toMatchObject({ code: 5 })
    expect(await list('chokaq.db', { CHOKAQ_DATABASE_URL: 'other.db' })).toMatchObject({ code: 0 })
  })

  it('takes a path and sqlite: before it', async () => {
    for (const db of [scene.db, `sqlite:${scene.db}`, 'sqlite:chokaq.db', `sqlite://${scene.db}`, './chokaq.db']) {
      expect(await list(db), db).toMatchObject({ code: 0 })
    }
  })

  it('refuses storages it does not know, and tells of a server that is not there, without repeating a password', async () => {
    for (const [db, code] of [
      ['mysql://me:secret@host/db', 'CHOKAQ_CLI_STORAGE_UNSUPPORTED'],
      ['postgres://me:secret@127.0.0.1:1/db', 'CHOKAQ_STORAGE_FAILED'],
      ['PostgreSQL://me:secret@127.0.0.1:1/db', 'CHOKAQ_STORAGE_FAILED'],
    ] as const) {
      const result = await list(db)
      expect(result.code).toBe(5)
      expect(result.stderr).toContain(code)
      expect(result.stderr).not.toContain('secret')
    }
  })

  it('takes the URL of a PostgreSQL server, whose tables a command that only looks does not make', async () => {
    const database = await createDatabase({ isEmpty: true })
    const missing = await list(database.url)
    expect([missing.code, missing.stderr]).toEqual([5, expect.stringContaining('CHOKAQ_SCHEMA_MISSING')])
    const driver = postgres(database.url).open(createNodeRuntime())
    await driver.inspector.setQueue({ name: 'mail', paused: true }, { actor: 'ada', note: '' })
    await driver.close()
    const found = await list(database.url)
    expect([found.code, found.stdout]).toEqual([0, expect.stringContaining('"mail"')])
    await database.drop()
  })

  it('takes the schema of a PostgreSQL database with every command', async () => {
    const database = await createDatabase({ isEmpty: true })
    const driver = postgres(database.url, { schema: 'Jobs of "us"' }).open(createNodeRuntime())
    await driver.inspector.setQueue({ name: 'mail', paused: true }, { actor: 'ada', note: '' })
    await driver.close()
    const args = ['queues', 'list', '--json', '--db', database.url]
    expect(await cli(args, { cwd: scene.cwd })).toMatchObject({ code: 5 })
    const found = await cli([...args, '--schema', 'Jobs of "us"'], { cwd: scene.cwd })
    expect([found.code, found.stdout]).toEqual([0, expect.stringContaining('"mail"')])
    await database.drop()
  })
})

describe('a wrong database', () => {
  it('is not made by a command that only looks or acts', async () => {
    for (const args of [
      ['jobs', 'list'],
      ['dlq', 'purge', '--all'],
      ['queues', 'pause', 'x'],
      ['enqueue', 'a', '{}'],
    ]) {
      const result = await cli([...args, '--db', 'typo.db'], { cwd: scene.cwd })
      expect(result.code).toBe(5)
      expect(result.stderr).toMatch(/^CHOKAQ_CLI_NO_DATABASE: There is no database at/)
    }
    expect(existsSync(join(scene.cwd, 'typo.db'))).toBe(false)
  })

  it('is told where a folder stands in its place or is missing', async () => {
    mkdirSync(join(scene.cwd, 'folder'))
    expect(await list('folder')).toMatchObject({ code: 5 })
    expect((await list('folder')).stderr).toContain('is a folder')
    scene.write('work.js', `export const handlers = []`)
    expect(await list('nowhere/chokaq.db')).toMatchObject({ code: 5 })
    expect(await list('')).toMatchObject({ code: 2 })
  })

  it('is refused where it is no SQLite file, and left as it is', async () => {
    const text = 'this is a text and no database, whatever its name says '.repeat(20)
    const path = scene.write('notes.db', text)
    const result = await list('notes.db')
    expect(result.code).toBe(5)
    expect(result.stderr).toContain('CHOKAQ_STORAGE_CORRUPT')
    expect(readFileSync(path, 'utf8')).toBe(text)
  })

  it.each([
    ['an application', 'CREATE TABLE customers (id INTEGER)', 'CHOKAQ_SCHEMA_MISSING'],
    ['a namesake', 'CREATE TABLE chokaq_things (id INTEGER)', 'CHOKAQ_STORAGE_FOREIGN'],
    ['nobody', '', 'CHOKAQ_SCHEMA_MISSING'],
  ])('is refused where it belongs to %s, and gets no tables', async (_who, sql, code) => {
    const path = join(scene.cwd, 'other.db')
    const tables = (): number => {
      const other = new Database(path)
      if (sql !== '') other.exec(sql.replace('TABLE', 'TABLE IF NOT EXISTS'))
      const count = (other.pragma('table_list') as unknown[]).length
      other.close()
      return count
    }
    const before = tables()
    const result = await list('other.db')
    expect(result.code).toBe(5)
    expect(result.stderr).toContain(code)
    expect(tables()).toBe(before)
  })

  it('is refused where a newer chokaq made it', async () => {
    const newer = new Database(scene.db)
    newer.exec(`INSERT INTO chokaq_migrations (version, name, applied_at) VALUES (1000, 'later', 0)`)
    newer.close()
    const result = await list(scene.db)
    expect(result.code).toBe(5)
    expect(result.stderr).toContain('CHOKAQ_SCHEMA_NEWER')
  })
})
