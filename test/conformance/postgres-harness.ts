// One fresh PostgreSQL storage for each case: the tables of one database are emptied between two of them.
import { describe, expect, test } from 'vitest'
import { postgres, type PostgresOptions } from 'chokaq/postgres'
import type { ConformanceHarness, ConformanceSubject, PlantedMarker } from '../../src/testing/conformance/harness.ts'
import type { FakeRuntime } from '../../src/testing/fake-runtime.ts'
import { createDatabase, keepOnFailure, type TestDatabase } from '../postgres/database.ts'
import { virtualPool, yieldToDatabase } from '../postgres/virtual-time.ts'

export interface PostgresHarnessOptions extends PostgresOptions {
  readonly name: string
}

export function inPostgres(database: TestDatabase, { name, ...options }: PostgresHarnessOptions): ConformanceHarness {
  const schema = `"${(options.schema ?? 'chokaq').replaceAll('"', '""')}"`
  return {
    name,
    api: { describe, test, expect },
    yieldToHost: yieldToDatabase,
    async create(runtime: FakeRuntime): Promise<ConformanceSubject> {
      keepOnFailure(database)
      const open = (seen: Pick<FakeRuntime, 'forProcess'> | undefined) =>
        postgres(virtualPool(database.url, runtime.clock), options).open(seen?.forProcess({ pid: 2000 }) ?? runtime)
      const drivers = [open(undefined)]
      const [driver] = drivers as [(typeof drivers)[number]]
      await driver.ready()
      await empty(database, schema)
      return {
        driver,
        async second() {
          const other = open(runtime)
          drivers.push(other)
          return other
        },
        plantMarker: (marker) => plantMarker(database, schema, runtime, marker),
        async cleanup() {
          for (const each of drivers) await each.close()
        },
      }
    },
  }
}

async function plantMarker(
  database: TestDatabase,
  schema: string,
  runtime: FakeRuntime,
  marker: PlantedMarker,
): Promise<void> {
  const { keyHash, state, jobId, generation, fingerprint, result, failure, expiresAtMs } = marker
  const failureText = failure === null ? null : JSON.stringify(failure)
  await database.query(
    `INSERT INTO ${schema}.idempotency_markers
        (key_hash, state, job_id, generation, token, created_at, expires_at, fingerprint, result, failure)
      VALUES (decode($1, 'hex'), $2, $3, $4, 0, $5, $6, $7, $8, $9)`,
    [keyHash, state, jobId, generation, runtime.clock.nowMs(), expiresAtMs ?? null, fingerprint, result, failureText],
  )
}

/** Every table but the list of migrations, by DELETE: on tables this small it is much faster than TRUNCATE. */
async function empty(database: TestDatabase, schema: string): Promise<void> {
  const rows = await database.query<{ readonly text: string }>(
    `SELECT string_agg(format('DELETE FROM %s', oid::regclass), '; ') AS text FROM pg_class
      WHERE relnamespace = $1::regnamespace AND relkind = 'r' AND relname <> 'migrations'`,
    [schema],
  )
  await database.query(rows[0]?.text ?? '')
}

/** A database with the schema of these options. */
export async function databaseFor(options: PostgresOptions = {}): Promise<TestDatabase> {
  const isDefault = options.schema === undefined
  const database = await createDatabase({ isEmpty: !isDefault })
  if (!isDefault) {
    const { createNodeRuntime } = await import('../../src/engine/node-runtime.ts')
    const driver = postgres(database.url, options).open(createNodeRuntime())
    await driver.ready()
    await driver.close()
  }
  return database
}
