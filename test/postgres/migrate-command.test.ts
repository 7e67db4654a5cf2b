// `chokaq migrate` on a server: what it makes, what it prints, and that what it prints makes the same.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgresSchema } from '../../scripts/dump-schema.ts'
import { migrations } from '../../src/storage/postgres/migrations.ts'
import { cli, type CliResult } from '../cli/fake-io.ts'
import { createDatabase, databaseUrl, type TestDatabase, withClient } from './database.ts'

const known = migrations.length
const databases: TestDatabase[] = []
async function emptyDatabase(): Promise<TestDatabase> {
  const made = await createDatabase({ isEmpty: true })
  databases.push(made)
  return made
}
const database = await emptyDatabase()
afterAll(() => Promise.all(databases.map((each) => each.drop())))

const migrate = (url: string, ...args: string[]): Promise<CliResult> =>
  cli(['migrate', '--db', url, ...args], { cwd: '.' })
const oddName = `it's a "schema"; \\ $$ --`
const oddIdentifier = `"${oddName.replaceAll('"', '""')}"`

describe('the plan', () => {
  it('is a script that makes what migrate makes, and plans nothing after that', async () => {
    const byHand = await emptyDatabase()
    const plan = await migrate(database.url, '--plan')
    expect(plan).toMatchObject({ code: 0, stderr: '' })
    expect(await database.query(`SELECT 1 FROM pg_namespace WHERE nspname = 'chokaq'`)).toEqual([])
    await withClient(byHand.url, (client) => client.query(plan.stdout))
    const made = await migrate(database.url)
    expect(made).toMatchObject({ code: 0, stderr: '' })
    expect(made.stdout).toMatch(new RegExp(`^made: postgres://\\S+ has version ${known} now `))
    expect(await postgresSchema(byHand)).toBe(await postgresSchema(database))
    const rows = `SELECT version, name FROM chokaq.migrations ORDER BY version`
    expect(await byHand.query(rows)).toEqual(await database.query(rows))
    for (const { url } of [byHand, database]) {
      const current = await migrate(url, '--plan')
      expect(current).toMatchObject({ code: 0, stdout: '' })
      expect(current.stderr).toMatch(/^nothing to do: /)
    }
  })

  it('has only what is missing', async () => {
    const old = await emptyDatabase()
    await migrate(old.url)
    await old.query('DELETE FROM chokaq.migrations WHERE version = $1', [known])
    const [plan] = (await migrate(old.url, '--plan', '--json')).json as [{ readonly sql: string }]
    expect(plan).toMatchObject({
      foundVersion: known - 1,
      pending: [{ version: known, name: migrations.at(-1)?.name }],
    })
    expect(plan.sql).not.toMatch(/CREATE SCHEMA|CREATE TABLE chokaq\.jobs_/)
  })

  it('works for a schema with an odd name', async () => {
    const byHand = await emptyDatabase()
    const plan = await migrate(byHand.url, '--plan', '--schema', oddName)
    await withClient(byHand.url, (client) => client.query(plan.stdout))
    const after = await migrate(byHand.url, '--schema', oddName)
    expect(after).toMatchObject({ code: 0, stderr: '' })
    expect(after.stdout).toMatch(/^nothing to do: /)
    expect(await byHand.query(`SELECT count(*)::int AS n FROM ${oddIdentifier}.migrations`)).toEqual([{ n: known }])
  })
})

describe('a role without the right to create', () => {
  const role = `reader_${process.pid}`
  const asRole = (): string => {
    const url = new URL(databaseUrl(database.url, database.name))
    url.username = role
    return url.href
  }
  beforeAll(async () => {
    await database.query(`CREATE ROLE ${role} LOGIN`)
  })
  afterAll(async () => {
    await database.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
  })

  it('can plan, cannot migrate, and needs no more once somebody else has', async () => {
    const plan = await migrate(asRole(), '--plan', '--schema', 'later')
    expect(plan.stdout).toContain('CREATE SCHEMA "later"')
    const refused = await migrate(asRole(), '--schema', 'later')
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toMatch(/^CHOKAQ_CONFIG_INVALID: .* permission denied/)
    await migrate(database.url, '--schema', 'later')
    await database.query(`GRANT USAGE ON SCHEMA later TO ${role}; GRANT SELECT ON later.migrations TO ${role}`)
    expect(await migrate(asRole(), '--schema', 'later')).toMatchObject({ code: 0, stderr: '' })
  })
})

describe('a server that is not there', () => {
  it.each([[[]], [['--plan']]])('is an error of the storage: %j', async (args) => {
    const result = await migrate('postgres://postgres@127.0.0.1:1/postgres', ...args)
    expect(result).toMatchObject({ code: 5, stdout: '' })
  })
})
