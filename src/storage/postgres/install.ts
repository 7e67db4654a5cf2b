/**
 * Makes and upgrades the tables. Eight processes that start together give one schema and no error: each takes the same
 * lock inside one transaction (it ends with it, so a pooler and a crash leave nothing behind), looks again what is there,
 * and writes the version before the step. A role that may only read and write rows is enough where the schema is
 * current, because then nothing is attempted.
 */
import { ChokaQError } from '../../core/errors.ts'
import type { Runtime } from '../../core/runtime.ts'
import { type Migration, pendingMigrations } from '../migration.ts'
import type { Connection } from './connection.ts'
import { migrations } from './migrations.ts'
import { sqlStateOf } from './postgres-errors.ts'
import type { SchemaName } from './schema-name.ts'

export interface InstallOptions {
  readonly schema: SchemaName
  readonly runtime: Runtime
  readonly location: string
  readonly migrate: boolean
}

const maxAttempts = 5
/** A large table takes its time. */
const stepDeadlineMs = 3_600_000
/** What a starter of another version, without our lock, can bring about in the catalogs. */
const catalogConflicts = new Set(['23505', '42P06', '42P07', '42710', '42723', '40P01', '40001', 'XX000'])

export async function install(connection: Connection, options: InstallOptions): Promise<void> {
  const { migrate, location } = options
  for (let attempt = 1; ; attempt += 1) {
    const found = (await findSchema(connection, options)).version
    if (pendingMigrations(migrations, found).length === 0) return
    if (!migrate) {
      const where = found === 0 ? location : `${location} (schema version ${found} of ${migrations.length})`
      throw new ChokaQError('CHOKAQ_SCHEMA_MISSING', { where })
    }
    try {
      await runMigrations(connection, options)
    } catch (error) {
      const isConflict = catalogConflicts.has(sqlStateOf(error) ?? '') && !connection.isBroken
      if (!isConflict || attempt === maxAttempts) throw error
    }
  }
}

interface FoundTables {
  readonly has_schema: number
  readonly has_migrations: number
  readonly columns: string | null
}

const selectTables = `SELECT (n.oid IS NOT NULL) AS has_schema, (c.oid IS NOT NULL) AS has_migrations,
    (SELECT string_agg(a.attname, ',' ORDER BY a.attnum) FROM pg_catalog.pg_attribute a
      WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns
  FROM (SELECT 1) one LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = $1
  LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = 'migrations'`

export interface FoundSchema {
  readonly hasSchema: boolean
  /** 0 where there are no tables. */
  readonly version: number
}

/** What is there. Throws where the tables are someone else's. */
export async function findSchema(
  connection: Connection,
  { schema, location }: Pick<InstallOptions, 'schema' | 'location'>,
): Promise<FoundSchema> {
  const [tables] = await connection.query<FoundTables>(selectTables, [schema.name])
  const hasSchema = tables?.has_schema === 1
  if (tables === undefined || tables.has_migrations === 0) return { hasSchema, version: 0 }
  if (tables.columns !== 'version,name,applied_at') {
    const problem = `the table migrations in its schema ${schema.quoted} has other columns`
    throw new ChokaQError('CHOKAQ_STORAGE_FOREIGN', { path: location, problem })
  }
  const text = schema.apply('SELECT coalesce(max(version), 0) AS version FROM chokaq.migrations')
  const [row] = await connection.query<{ readonly version: number }>(text)
  return { hasSchema, version: row?.version ?? 0 }
}

/** The beginning of the one transaction that all steps share. The lock ends with it. */
export function openingTexts(schema: SchemaName): readonly string[] {
  const name = schema.name.replaceAll("'", "''")
  return [
    'BEGIN ISOLATION LEVEL READ COMMITTED',
    'SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0',
    // A name may have a backslash.
    'SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL standard_conforming_strings = on',
    'SET LOCAL client_min_messages = warning',
    `SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('chokaq migrations ${name}', 0))`,
  ]
}

/** Where the names of versions are kept. Even IF NOT EXISTS asks for the right to create. */
export function preparingTexts(schema: SchemaName, { hasSchema }: FoundSchema): readonly string[] {
  const table = schema.apply(`CREATE TABLE IF NOT EXISTS chokaq.migrations
  (version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())`)
  return [...(hasSchema ? [] : [`CREATE SCHEMA ${schema.quoted}`]), table]
}

/** A migration: its version first, so that another starter of the same version stops here. */
export function stepTexts(schema: SchemaName, { version, name, sql }: Migration): readonly string[] {
  const record = `INSERT INTO chokaq.migrations (version, name) VALUES (${version}, '${name}')`
  return [schema.apply(record), schema.apply(sql)]
}

async function runMigrations(connection: Connection, options: InstallOptions): Promise<void> {
  const { schema, runtime } = options
  const run = async (texts: readonly string[]): Promise<void> => {
    for (const text of texts) await connection.query(text, undefined, stepDeadlineMs)
  }
  try {
    await run(openingTexts(schema))
    const found = await findSchema(connection, options)
    await run(preparingTexts(schema, found))
    for (const migration of pendingMigrations(migrations, found.version)) {
      await run(stepTexts(schema, migration))
      runtime.faults.reach('migration-step')
    }
    await connection.query('COMMIT')
  } catch (error) {
    if (!connection.isBroken) await connection.query('ROLLBACK').catch(() => connection.markBroken())
    throw error
  }
}
