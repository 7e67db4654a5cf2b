// Starters that race, odd schema names, and databases that are not for us.
import { afterAll, describe, expect, it } from 'vitest'
import { postgres, type PostgresOptions } from 'chokaq/postgres'
import { newJob } from '../../src/testing/conformance/new-job.ts'
import { migrations } from '../../src/storage/postgres/migrations.ts'
import { createDatabase, databaseUrl, keepOnFailure } from './database.ts'
import { beat, codeOf, register, roundTrip, runtime } from './scene.ts'

const database = await createDatabase({ isEmpty: true })
afterAll(() => database.drop())

const open = (options: PostgresOptions = {}, url = database.url) => postgres(url, options).open(runtime)

/** Opens, uses and closes a storage. */
async function use(options: PostgresOptions = {}, url?: string): Promise<string> {
  const driver = open(options, url)
  try {
    const job = newJob(runtime)
    const [verdict] = await driver.enqueue([job])
    return verdict?.kind ?? 'nothing'
  } finally {
    await driver.close()
  }
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

const oddNames = ['chokaq_2', `it's a "quote"; $$ --`, 'Grüße.日本', '$1::text', 'a'.repeat(63)] as const

describe('eight starters at once', () => {
  it.each(oddNames)('make one schema and no error: %s', async (schema) => {
    keepOnFailure(database)
    const starters = Array.from({ length: 8 }, () => open({ schema }))
    const outcomes = await Promise.allSettled(starters.map((driver) => driver.ready()))
    await Promise.all(starters.map((driver) => driver.close()))
    expect(outcomes.filter(({ status }) => status === 'rejected')).toEqual([])
    const rows = await database.query(`SELECT version, name FROM ${quoted(schema)}.migrations ORDER BY version`)
    expect(rows).toEqual(migrations.map(({ version, name }) => ({ version, name })))
    expect(await use({ schema })).toBe('inserted')
  })
})

describe('a schema name', () => {
  it.each(['', 'a'.repeat(64), 'ü'.repeat(32), 'nul\0'])(
    'that PostgreSQL would cut or refuse is refused: %j',
    (schema) => {
      expect(() => postgres(database.url, { schema })).toThrow(
        expect.objectContaining({ code: 'CHOKAQ_OPTION_INVALID' }),
      )
    },
  )
})

describe('a role that may only read and write rows', () => {
  it('is enough where the schema is current, and is told what is missing where it is not', async () => {
    const schema = 'app jobs'
    await database.query(`DROP ROLE IF EXISTS chokaq_writer`)
    await database.query(`CREATE ROLE chokaq_writer LOGIN`)
    const url = new URL(databaseUrl(database.url, database.name))
    url.username = 'chokaq_writer'
    expect(await codeOf(use({ schema }, url.href))).toBe('CHOKAQ_CONFIG_INVALID')
    await use({ schema })
    await database.query(`GRANT USAGE ON SCHEMA ${quoted(schema)} TO chokaq_writer;
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${quoted(schema)} TO chokaq_writer;
      GRANT USAGE ON ALL SEQUENCES IN SCHEMA ${quoted(schema)} TO chokaq_writer`)
    expect(await use({ schema }, url.href)).toBe('inserted')
    expect(await use({ schema, migrate: false }, url.href)).toBe('inserted')
    await database.query(`DROP OWNED BY chokaq_writer; DROP ROLE chokaq_writer`)
  })
})

describe('a worker of an older version', () => {
  it('that runs while the schema is upgraded goes on', async () => {
    const schema = 'upgraded'
    const driver = open({ schema })
    await driver.ready()
    await register(driver)
    expect(await roundTrip(driver)).toBe('completed')
    // What a step of tomorrow may do: columns with a default, tables, indexes.
    await database.query(`BEGIN; INSERT INTO upgraded.migrations (version, name) VALUES (1000, 'of_tomorrow');
      ALTER TABLE upgraded.jobs_hot ADD COLUMN colour text NOT NULL DEFAULT 'red';
      ALTER TABLE upgraded.jobs_archive ADD COLUMN colour text; CREATE TABLE upgraded.more (id int);
      CREATE INDEX ON upgraded.jobs_hot (colour); COMMIT`)
    expect(await roundTrip(driver)).toBe('completed')
    expect(await beat(driver)).toMatchObject({ kind: 'alive' })
    await driver.close()
    expect(await codeOf(use({ schema }))).toBe('CHOKAQ_SCHEMA_NEWER')
  })
})

describe('a database that is not ready', () => {
  it('is refused without migrate, and nothing is made', async () => {
    expect(await codeOf(use({ schema: 'nothing here', migrate: false }))).toBe('CHOKAQ_SCHEMA_MISSING')
    expect(await database.query(`SELECT 1 FROM pg_namespace WHERE nspname = 'nothing here'`)).toEqual([])
  })

  it('with a newer schema is refused', async () => {
    const schema = 'newer'
    await use({ schema })
    await database.query(
      `INSERT INTO newer.migrations (version, name) VALUES (${migrations.length + 1}, 'of_tomorrow')`,
    )
    expect(await codeOf(use({ schema }))).toBe('CHOKAQ_SCHEMA_NEWER')
    expect(await codeOf(use({ schema, migrate: false }))).toBe('CHOKAQ_SCHEMA_NEWER')
  })

  it('whose schema has a table migrations of somebody else is left as it is', async () => {
    await database.query('CREATE SCHEMA foreign_app; CREATE TABLE foreign_app.migrations (id int, file text)')
    expect(await codeOf(use({ schema: 'foreign_app' }))).toBe('CHOKAQ_STORAGE_FOREIGN')
    const tables = await database.query(`SELECT 1 FROM pg_tables WHERE schemaname = 'foreign_app'`)
    expect(tables).toHaveLength(1)
  })

  it('or not there is no reason to try for ever', async () => {
    expect(await codeOf(use({}, databaseUrl(database.url, 'no_such_database')))).toBe('CHOKAQ_CONFIG_INVALID')
    expect(await codeOf(use({}, 'postgres://postgres@127.0.0.1:1/postgres'))).toBe('CHOKAQ_STORAGE_FAILED')
  })
})
