// Who waits for whom: a user's open transaction, two batches, and those who sleep until a job comes.
import { createChokaQ, defineJob } from 'chokaq'
import { postgres, type PostgresOptions } from 'chokaq/postgres'
import pg from 'pg'
import { z } from 'zod'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import type { StorageDriver } from '../../src/core/storage.ts'
import { keyedJob, newJob } from '../../src/testing/conformance/new-job.ts'
import { soon } from '../soon.ts'
import { createDatabase } from './database.ts'
import { open, patient, runtime } from './scene.ts'

const database = await createDatabase()
afterAll(() => database.drop())
const drivers: StorageDriver[] = []
const opened = (options: PostgresOptions = {}): StorageDriver => {
  const driver = open(database.url, options)
  drivers.push(driver)
  return driver
}
afterEach(async () => {
  await Promise.all(drivers.splice(0).map((driver) => driver.close()))
})

/** A driver, and the statements of it that notify. */
function recorded(options: PostgresOptions = {}): {
  driver: StorageDriver
  notifying: () => readonly string[]
  end: () => Promise<void>
} {
  const texts: string[] = []
  class RecordingClient extends pg.Client {
    override query(...args: unknown[]): never {
      const [query] = args as [{ readonly text?: string } | string]
      texts.push(typeof query === 'string' ? query : (query.text ?? ''))
      return super.query(...(args as [string])) as never
    }
  }
  const pool = new pg.Pool({ connectionString: database.url, Client: RecordingClient })
  const driver = open(pool, options)
  drivers.push(driver)
  return { driver, notifying: () => texts.filter((text) => text.includes('pg_notify')), end: () => pool.end() }
}

async function withUser<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(database.url)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

describe("a key that a user's open transaction holds", () => {
  it('is refused as busy, and its 99 neighbours get in', async () => {
    const driver = opened()
    await driver.ready()
    await withUser(async (client) => {
      const held = keyedJob(runtime, 'held')
      await client.query('BEGIN')
      expect(await driver.enqueueIn(client, [held])).toEqual([{ kind: 'inserted' }])
      const jobs = Array.from({ length: 100 }, (_, n) => keyedJob(runtime, n === 42 ? 'held' : `free-${n}`))
      const startedMs = performance.now()
      const verdicts = await driver.enqueue(jobs)
      expect(performance.now() - startedMs).toBeLessThan(3_000)
      expect(verdicts.filter(({ kind }) => kind === 'inserted')).toHaveLength(99)
      expect(verdicts[42]).toMatchObject({ kind: 'refused', error: { code: 'CHOKAQ_STORAGE_BUSY' } })
      await client.query('COMMIT')
      expect(await driver.enqueue([jobs[42] ?? held])).toEqual([{ kind: 'active', jobId: held.id, state: 'pending' }])
    })
  })

  it('makes only its own caller wait, until the key is free', async () => {
    const pay = defineJob({
      type: 'payment.held.v1',
      payload: z.object({ id: z.string() }),
      key: ({ id }) => id,
      duplicateWindow: '1d',
    })
    const chokaq = createChokaQ({ storage: postgres(database.url) })
    await withUser(async (client) => {
      await client.query('BEGIN')
      const first = await chokaq.enqueue(pay, { id: 'a' }, { tx: client })
      let isAnswered = false
      const waiting = chokaq.enqueue(pay, { id: 'a' }).finally(() => (isAnswered = true))
      const others = await Promise.all(['b', 'c', 'd'].map((id) => chokaq.enqueue(pay, { id })))
      expect(others.map(({ outcome }) => outcome)).toEqual(['enqueued', 'enqueued', 'enqueued'])
      // Long after a batch would have been given up.
      await chokaq.enqueue(pay, { id: 'e' })
      expect(isAnswered).toBe(false)
      await client.query('COMMIT')
      expect(await waiting).toMatchObject({ outcome: 'already-active', id: first.id })
    })
    await chokaq.close()
  })

  it('is free again where that transaction rolls back', async () => {
    const driver = opened(patient)
    await driver.ready()
    await withUser(async (client) => {
      const held = keyedJob(runtime, 'rolled-back')
      await client.query('BEGIN')
      await driver.enqueueIn(client, [held])
      const waiting = driver.enqueue([keyedJob(runtime, 'rolled-back')])
      await client.query('ROLLBACK')
      expect(await waiting).toEqual([{ kind: 'inserted' }])
      expect(await driver.inspector.get(held.id)).toBeUndefined()
    })
  })
})

describe('batches that meet', () => {
  it('of the same keys in opposite orders deadlock never and lose nothing', async () => {
    const [one, other] = [opened(patient), opened(patient)]
    for (let round = 0; round < 10; round += 1) {
      const keys = Array.from({ length: 40 }, (_, n) => `met-${round}-${n}`)
      const batches = [keys, [...keys].reverse()].map((each) => each.map((key) => keyedJob(runtime, key)))
      const verdicts = await Promise.all([one.enqueue(batches[0] ?? []), other.enqueue(batches[1] ?? [])])
      const kinds = verdicts.flat().map(({ kind }) => kind)
      expect(kinds.filter((kind) => kind === 'inserted')).toHaveLength(40)
      expect(kinds.filter((kind) => kind === 'active')).toHaveLength(40)
    }
    const rows = await database.query<{ readonly deadlocks: string }>(
      'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
    )
    expect(Number(rows[0]?.deadlocks)).toBe(0)
  })
})

describe('those who listen', () => {
  it('hear what another connection commits, and not what it rolls back', async () => {
    const [listening, other] = [opened(), opened()]
    await Promise.all([listening.ready(), other.ready()])
    let calls = 0
    listening.onWake(() => void (calls += 1))
    // The first call says that it listens from now on.
    await vi.waitFor(() => expect(calls).toBe(1), soon)
    await other.enqueue([newJob(runtime)])
    await vi.waitFor(() => expect(calls).toBeGreaterThan(1), soon)
  })

  it('hear a job of a transaction when it commits', async () => {
    const [listening, other] = [opened(), opened()]
    await Promise.all([listening.ready(), other.ready()])
    let calls = 0
    listening.onWake(() => void (calls += 1))
    await vi.waitFor(() => expect(calls).toBe(1), soon)
    await withUser(async (client) => {
      await client.query('BEGIN')
      await other.enqueueIn(client, [newJob(runtime)])
      await client.query('COMMIT')
    })
    await vi.waitFor(() => expect(calls).toBeGreaterThan(1), soon)
  })

  it('hear of a lone enqueue with its commit, and of a delayed job not at all', async () => {
    const { driver, notifying, end } = recorded()
    await driver.ready()
    await withUser(async (client) => {
      let heard = 0
      client.on('notification', () => void (heard += 1))
      await client.query('LISTEN chokaq_wake')
      await driver.enqueue([newJob(runtime, { due: { kind: 'in', delayMs: 60_000 } })])
      expect(notifying()).toEqual([])
      await driver.enqueue([newJob(runtime), newJob(runtime)])
      await vi.waitFor(() => expect(heard).toBe(1), soon)
      expect(notifying()).toEqual([expect.stringContaining('INSERT INTO chokaq.jobs_hot')])
    })
    await end()
  })

  it('hear of it by a statement of its own for a while, once a commit that told them had to wait', async () => {
    const { driver, notifying, end } = recorded(patient)
    await driver.ready()
    const longerMs = 40
    await withUser(async (client) => {
      await client.query('BEGIN')
      await opened().enqueueIn(client, [keyedJob(runtime, 'waited-for')])
      const enqueued = driver.enqueue([keyedJob(runtime, 'waited-for')])
      const sinceMs = performance.now()
      await vi.waitFor(() => expect(performance.now() - sinceMs).toBeGreaterThan(longerMs), soon)
      await client.query('ROLLBACK')
      expect((await enqueued).map(({ kind }) => kind)).toEqual(['inserted'])
    })
    expect(notifying()).toEqual([expect.stringContaining('INSERT INTO chokaq.jobs_hot')])
    const silentMs = performance.now()
    await vi.waitFor(() => expect(performance.now() - silentMs).toBeGreaterThan(longerMs), soon)
    await driver.enqueue([newJob(runtime)])
    await vi.waitFor(() => expect(notifying()).toHaveLength(2), soon)
    expect(notifying()[1]).not.toContain('INSERT')
    await end()
  })

  it('cost one notification for many jobs', async () => {
    const driver = opened()
    await driver.ready()
    await withUser(async (client) => {
      let heard = 0
      client.on('notification', () => void (heard += 1))
      await client.query('LISTEN chokaq_wake')
      await Promise.all(Array.from({ length: 50 }, () => driver.enqueue([newJob(runtime), newJob(runtime)])))
      await driver.close()
      await client.query('SELECT 1')
      expect(heard).toBeGreaterThan(0)
      expect(heard).toBeLessThan(50)
    })
  })
})
