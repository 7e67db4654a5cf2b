// Somebody else's transaction holds a snapshot, so nothing that died since is removed, and a fetch must not walk over all
// of it each time. It enters the lane where it has been, at the price of rows that become pending behind it for a while.
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgres } from 'chokaq/postgres'
import type { StorageDriver } from '../../src/core/storage.ts'
import { newJob } from '../../src/testing/conformance/new-job.ts'
import { createDatabase } from './database.ts'
import { beat, fast, register, runtime } from './scene.ts'

const database = await createDatabase()
const holder = new pg.Client(database.url)
const client = new pg.Client(database.url)
let driver: StorageDriver

/** What the driver's clock adds with every look at it: a whole look is as slow as the test wants. */
let stepMs = 0
let clockMs = 0
const monotonicMs = (): number => (clockMs += stepMs)
const slow = { ...runtime, clock: { nowMs: () => runtime.clock.nowMs(), monotonicMs } }

const longAgo = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 120000'

/** Rows that were due two minutes ago, as of a transaction that was open for as long. */
async function insertLate(count: number): Promise<readonly string[]> {
  const { rows } = await client.query<{ id: string }>(
    `INSERT INTO chokaq.jobs_hot (id, run_at, created_at, generation, priority, state, type, queue, payload)
     SELECT gen_random_uuid(), ${longAgo}, ${longAgo}, 1, 0, 'pending', $1, 'default', '{}' FROM generate_series(1, $2::int)
     RETURNING id`,
    [fast.type, count],
  )
  return rows.map(({ id }) => id)
}

async function enqueueNow(): Promise<readonly string[]> {
  const job = newJob(runtime)
  await driver.enqueue([job])
  return [job.id]
}

async function fetchOne(workerId = 'w'): Promise<readonly string[]> {
  const jobs = await driver.fetch({ workerId, queue: 'default', limit: 1, policies: [fast] })
  return jobs.map(({ lease }) => lease.jobId)
}

/** A whole look that seems to have walked: the fetches after it start from the front. */
async function lookSlowly(): Promise<readonly string[]> {
  clockMs += 3_600_000
  stepMs = 1_000
  try {
    return await fetchOne()
  } finally {
    stepMs = 0
  }
}

beforeAll(async () => {
  driver = postgres(database.url, { poolSize: 1 }).open(slow)
  await register(driver)
  await holder.connect()
  await client.connect()
  await holder.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM chokaq.jobs_hot')
  await insertLate(25_000)
  await client.query('DELETE FROM chokaq.jobs_hot')
  await client.query('SELECT pg_stat_force_next_flush()')
  await client.query('SELECT 1')
})
afterAll(async () => {
  await holder.end()
  await client.end()
  await driver.close()
  await database.drop()
})

describe('with a snapshot held', () => {
  it('enters the lane where it has been, and looks at all of it now and then', async () => {
    expect(await enqueueNow()).toEqual(await lookSlowly())
    const late = await insertLate(1)
    expect(await enqueueNow()).toEqual(await fetchOne())
    expect(await fetchOne()).toEqual([])
    clockMs += 30_000
    expect(await fetchOne()).toEqual(late)
  })

  it('looks at all of it after a rescue of its own', async () => {
    const [late = ''] = await insertLate(1)
    clockMs += 3_600_000
    expect(await fetchOne('gone')).toEqual([late])
    expect(await enqueueNow()).toEqual(await lookSlowly())
    expect(await driver.rescue({ deadWorkerIds: ['gone'], provenDeadIds: [], limit: 10 })).toHaveLength(1)
    expect(await fetchOne()).toEqual([late])
  })

  it('looks at all of it each time while that is quick', async () => {
    clockMs += 3_600_000
    expect(await enqueueNow()).toEqual(await fetchOne())
    const late = await insertLate(1)
    expect(await fetchOne()).toEqual(late)
  })

  it('leaves the look at what a worker owns out of the beats after a slow one', async () => {
    clockMs += 3_600_000
    await enqueueNow()
    expect(await fetchOne()).toHaveLength(1)
    stepMs = 5_000
    const slowBeat = await beat(driver)
    stepMs = 0
    expect(slowBeat).toMatchObject({ kind: 'alive', ownsJobs: true })
    expect(await beat(driver)).toMatchObject({ kind: 'alive', ownsJobs: false })
    clockMs += 3_600_000
    expect(await beat(driver)).toMatchObject({ kind: 'alive', ownsJobs: true })
  })
})
