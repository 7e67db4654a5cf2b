// The committed dumps are what the migrations make; they are what a review looks at.
import { readFileSync } from 'node:fs'
import { afterAll, expect, it } from 'vitest'
import { postgresSchema, schemaFiles, sqliteSchema } from '../../scripts/dump-schema.ts'
import { createDatabase } from './database.ts'

const database = await createDatabase()
afterAll(() => database.drop())

it('docs/schema/postgres.sql is what a migrated database has: else run `npm run schema`', async () => {
  expect(await postgresSchema(database)).toBe(readFileSync(schemaFiles.postgres, 'utf8'))
  await database.query('ALTER TABLE chokaq.queues ADD COLUMN one_more text')
  expect(await postgresSchema(database)).not.toBe(readFileSync(schemaFiles.postgres, 'utf8'))
})

it('docs/schema/sqlite.sql is what a migrated file has: else run `npm run schema`', () => {
  expect(sqliteSchema()).toBe(readFileSync(schemaFiles.sqlite, 'utf8'))
})
