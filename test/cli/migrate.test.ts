// `chokaq migrate` on a file; test/postgres/migrate-command.test.ts has the server.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { migrations } from '../../src/storage/sqlite/migrations.ts'
import { cli, type CliResult } from './fake-io.ts'

let cwd: string
beforeEach(() => (cwd = mkdtempSync(join(tmpdir(), 'chokaq-migrate-'))))
afterEach(() => rmSync(cwd, { recursive: true, force: true }))

const migrate = (...args: string[]): Promise<CliResult> => cli(['migrate', ...args], { cwd })
const known = migrations.length

function tablesOf(file: string): readonly unknown[] {
  const db = new Database(join(cwd, file))
  try {
    const rows: unknown[] = db.prepare('SELECT type, name, sql FROM sqlite_master ORDER BY name').all()
    return [...rows, db.pragma('application_id'), db.prepare('SELECT version, name FROM chokaq_migrations').all()]
  } finally {
    db.close()
  }
}

it('makes the tables, and then finds nothing to do', async () => {
  const file = join(cwd, 'chokaq.db')
  const names = migrations.map(({ name }) => name).join(', ')
  expect(await migrate()).toMatchObject({ code: 0, stdout: `made: ${file} has version ${known} now (${names})\n` })
  const again = await migrate()
  expect(again).toMatchObject({ code: 0, stdout: `nothing to do: ${file} has version ${known}, the current one\n` })
})

it('plans without making a file, and the plan makes the same tables', async () => {
  const plan = await migrate('--plan')
  expect(plan).toMatchObject({ code: 0, stderr: '' })
  expect(existsSync(join(cwd, 'chokaq.db'))).toBe(false)
  const db = new Database(join(cwd, 'by-hand.db'))
  db.exec(plan.stdout)
  db.close()
  expect((await migrate()).code).toBe(0)
  expect(tablesOf('by-hand.db')).toEqual(tablesOf('chokaq.db'))
})

it('plans only what is missing, and nothing where nothing is', async () => {
  await migrate()
  const current = await migrate('--plan')
  expect(current).toMatchObject({ code: 0, stdout: '' })
  expect(current.stderr).toMatch(/^nothing to do: .*chokaq\.db has version/)
  expect((await migrate('--plan', '--json')).json).toMatchObject([{ foundVersion: known, pending: [], sql: '' }])
  const db = new Database(join(cwd, 'chokaq.db'))
  db.prepare('DELETE FROM chokaq_migrations WHERE version = ?').run(known)
  db.close()
  const [plan] = (await migrate('--plan', '--json')).json as [{ readonly sql: string; readonly pending: unknown }]
  expect(plan.pending).toEqual([{ version: known, name: migrations.at(-1)?.name }])
  expect(plan.sql).toContain(`VALUES (${known}, `)
  expect(plan.sql).not.toContain(`VALUES (${known - 1}, `)
})

it('refuses a newer file, a foreign one and a schema', async () => {
  await migrate()
  const db = new Database(join(cwd, 'chokaq.db'))
  db.exec(`INSERT INTO chokaq_migrations (version, name, applied_at) VALUES (1000, 'later', 0)`)
  db.close()
  const foreign = new Database(join(cwd, 'foreign.db'))
  foreign.exec('CREATE TABLE chokaq_jobs (id INTEGER)')
  foreign.close()
  for (const args of [[], ['--plan']]) {
    const newer = await migrate(...args)
    expect(newer).toMatchObject({ code: 5, stdout: '' })
    expect(newer.stderr).toMatch(/^CHOKAQ_SCHEMA_NEWER/)
    const other = await migrate('--db', 'foreign.db', ...args)
    expect(other).toMatchObject({ code: 5, stdout: '' })
    expect(other.stderr).toMatch(/^CHOKAQ_STORAGE_FOREIGN/)
    const schema = await migrate('--schema', 'jobs', ...args)
    expect(schema).toMatchObject({ code: 2, stdout: '' })
    expect(schema.stderr).toMatch(/^CHOKAQ_CLI_USAGE/)
  }
})
