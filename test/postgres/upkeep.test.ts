// What `chokaq doctor` asks a real server: dead rows, autovacuum that was turned off, transactions that hold cleaning up.
import pg from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { postgres } from 'chokaq/postgres'
import { createNodeRuntime } from '../../src/engine/node-runtime.ts'
import { newJob } from '../../src/testing/conformance/new-job.ts'
import { soon } from '../soon.ts'
import { createDatabase, keepOnFailure, withClient } from './database.ts'

const runtime = createNodeRuntime()
const database = await createDatabase()
const driver = postgres(database.url).open(runtime)
afterAll(async () => {
  await driver.close()
  await database.drop()
})

async function hotTable(): Promise<{ readonly deadCount: number; readonly isCleaned: boolean; cleanedAtMs?: number }> {
  const table = (await driver.inspector.upkeep()).tables.find(({ name }) => name === 'jobs_hot')
  if (table === undefined) throw new TypeError('no table jobs_hot')
  const { cleanedAtMs, ...rest } = table
  return cleanedAtMs === undefined ? rest : { ...rest, cleanedAtMs }
}

/** A session hands its statistics over when it ends; one that only idles may keep them for ten seconds. */
async function inOwnSession(sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  await client.query(sql)
  await client.end()
}

describe('the upkeep of PostgreSQL', () => {
  it('counts who listens, and does not guess what its role may not see', async () => {
    const listenerCount = async () => (await driver.inspector.upkeep()).listenerCount
    expect(await listenerCount()).toBe(0)
    const stop = driver.onWake(() => undefined)
    await expect.poll(listenerCount, soon).toBe(1)
    stop()
    await expect.poll(listenerCount, soon).toBe(0)
  })

  it('lists the tables of the schema, and no others', async () => {
    keepOnFailure(database)
    await database.query('CREATE TABLE public.of_the_app (id integer)')
    const names = (await driver.inspector.upkeep()).tables.map(({ name }) => name)
    expect(names).toEqual(
      expect.arrayContaining(['jobs_archive', 'jobs_dlq', 'jobs_hot', 'worker_counters', 'workers']),
    )
    expect(names).not.toContain('of_the_app')
  })

  it('counts dead rows until they are cleaned up', async () => {
    const jobs = Array.from({ length: 300 }, () => newJob(runtime))
    await driver.enqueue(jobs)
    await inOwnSession('UPDATE chokaq.jobs_hot SET priority = 1')
    await expect.poll(async () => (await hotTable()).deadCount, soon).toBeGreaterThanOrEqual(300)
    await inOwnSession('VACUUM chokaq.jobs_hot')
    await expect.poll(async () => (await hotTable()).deadCount, soon).toBe(0)
    expect(Math.abs(((await hotTable()).cleanedAtMs ?? 0) - runtime.clock.nowMs())).toBeLessThan(60_000)
  }, 30_000)

  it('sees that autovacuum is off for a table', async () => {
    expect((await hotTable()).isCleaned).toBe(true)
    await database.query('ALTER TABLE chokaq.jobs_hot SET (autovacuum_enabled = off)')
    expect((await hotTable()).isCleaned).toBe(false)
    await database.query('ALTER TABLE chokaq.jobs_hot RESET (autovacuum_enabled)')
    expect((await hotTable()).isCleaned).toBe(true)
  })

  it('sees the oldest transaction for whose sake dead rows are kept', async () => {
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
    await client.query('SELECT count(*) FROM chokaq.jobs_hot')
    const started = runtime.clock.nowMs()
    await expect
      .poll(async () => (await driver.inspector.upkeep()).oldestSnapshotMs ?? 0, soon)
      .toBeGreaterThanOrEqual(50)
    expect((await driver.inspector.upkeep()).oldestSnapshotMs).toBeLessThan(runtime.clock.nowMs() - started + 5_000)
    await client.query('ROLLBACK')
    await client.end()
  })

  it('does not blame a transaction in another database, which keeps no dead row of this one', async () => {
    const other = await createDatabase()
    await withClient(other.url, async (client) => {
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
      await client.query('SELECT count(*) FROM chokaq.jobs_hot')
      await inOwnSession('UPDATE chokaq.jobs_hot SET priority = 2')
      await inOwnSession('VACUUM chokaq.jobs_hot')
      await expect.poll(async () => (await hotTable()).deadCount, soon).toBe(0)
      const began = await client.query(
        'SELECT extract(epoch FROM xact_start) * 1000 AS at FROM pg_stat_activity WHERE pid = pg_backend_pid()',
      )
      const beganAtMs = Number((began.rows[0] as { readonly at: string }).at)
      const { nowMs, oldestSnapshotMs = 0 } = await driver.inspector.upkeep()
      expect(nowMs - oldestSnapshotMs, 'younger than the other one').toBeGreaterThan(beganAtMs + 1)
    })
    await other.drop()
  })
})
