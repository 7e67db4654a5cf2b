// ctx.transaction on a real server in real time: a client that falls silent keeps the job's row from nobody for long, and
// the handler's own time has no limit of the storage's.
import pg from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import type { CheckpointRequest, StorageDriver } from '../../src/core/storage.ts'
import { newJob } from '../../src/testing/conformance/new-job.ts'
import { soon } from '../soon.ts'
import { createDatabase, withClient } from './database.ts'
import { codeOf, fetchAll, open, register, runtime } from './scene.ts'
import { WireProxy } from './wire-proxy.ts'

const statementDeadlineMs = 500
const database = await createDatabase()
const proxy = await WireProxy.before(database.url)
const proxied = open(proxy.url, { statementDeadlineMs, listen: false })
const direct = open(database.url)
await database.query('CREATE TABLE public.parcels (id text)')
await register(direct)
afterAll(async () => {
  await Promise.all([proxied.close(), direct.close()])
  await proxy.close()
  await database.drop()
})

/** A checkpoint of a job that runs. */
async function runningJob(): Promise<CheckpointRequest> {
  const job = newJob(runtime)
  await direct.enqueue([job])
  const [fetched] = await fetchAll(direct)
  if (fetched?.lease.jobId !== job.id) throw new Error('another job was fetched')
  const ref = { kind: 'checkpoint', keyRef: `job:${job.id}`, generation: 1, name: 'ship', item: '' } as const
  return { lease: fetched.lease, ref, id: runtime.newId(), workerId: 'w', attempt: 1, keepMs: 60_000 }
}

function ship(driver: StorageDriver, request: CheckpointRequest, before: (tx: pg.ClientBase) => Promise<unknown>) {
  return driver.transaction(request, async (handle) => {
    const tx = handle as pg.ClientBase
    await tx.query('INSERT INTO public.parcels VALUES ($1)', [request.lease.jobId])
    await before(tx)
    return '"shipped"'
  })
}

async function parcels({ lease }: CheckpointRequest): Promise<number> {
  return (await database.query('SELECT 1 FROM public.parcels WHERE id = $1', [lease.jobId])).length
}

describe('a connection that falls silent behind the work of a handler', () => {
  it.each([
    { at: 2, what: /FOR SHARE/ },
    { at: 3, what: /INSERT INTO/ },
    { at: 4, what: /^COMMIT/ },
  ])('before $what frees the row of the job soon, and the next attempt ships once', async ({ at, what }) => {
    const request = await runningJob()
    const startedMs = performance.now()
    const verdict = codeOf(ship(proxied, request, async () => proxy.arm({ at, kind: 'half-open' })))
    await expect.poll(() => proxy.struck, soon).toMatch(what)
    // As whoever rescues the job would: waits for its row.
    await withClient(database.url, (client) =>
      client.query('SELECT 1 FROM chokaq.jobs_hot WHERE id = $1 FOR UPDATE', [request.lease.jobId]),
    )
    expect(performance.now() - startedMs).toBeLessThan(10 * statementDeadlineMs)
    expect(await verdict).toBe('CHOKAQ_STORAGE_FAILED')
    proxy.disarm()
    expect(await parcels(request)).toBe(0)
    expect(await ship(proxied, request, async () => undefined)).toEqual({ kind: 'ran', result: '"shipped"' })
    expect(await ship(proxied, request, async () => undefined)).toEqual({ kind: 'replayed', result: '"shipped"' })
    expect(await parcels(request)).toBe(1)
  })
})

describe('an attempt that is over', () => {
  async function ended(driver: StorageDriver, work: (tx: pg.ClientBase) => Promise<unknown>): Promise<void> {
    const request = await runningJob()
    const attempt = new AbortController()
    let hasBegun = false
    const verdict = codeOf(
      ship(driver, { ...request, over: attempt.signal }, async (tx) => {
        hasBegun = true
        await work(tx)
      }),
    )
    await expect.poll(() => hasBegun, soon).toBe(true)
    attempt.abort()
    expect(await verdict).toBe('CHOKAQ_CTX_REVOKED')
    expect(await codeOf(ship(driver, { ...request, over: attempt.signal }, work))).toBe('CHOKAQ_CTX_REVOKED')
    expect(await parcels(request)).toBe(0)
  }

  it('waits no longer for a handler that never comes back, and the server keeps nothing of it', async () => {
    const driver = open(database.url)
    await ended(driver, () => new Promise(() => undefined))
    await driver.close()
    const left = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'`
    await expect.poll(() => database.query(left), soon).toEqual([])
  })

  it('cuts a statement of the handler that went into a half-open socket, and the storage can close', async () => {
    const driver = open(proxy.url, { statementDeadlineMs, listen: false })
    await ended(driver, async (tx) => {
      proxy.arm({ at: 1, kind: 'half-open' })
      await tx.query('SELECT 1')
    })
    proxy.disarm()
    await driver.close()
  })
})

describe("a handler's own time", () => {
  it('in a transaction is watched by the server, which gives up a client that is gone within half a minute', async () => {
    const shown: unknown[] = []
    await ship(direct, await runningJob(), async (tx) => {
      const { rows } = await tx.query(`SELECT name, setting::int AS value FROM pg_settings
        WHERE name IN ('tcp_keepalives_idle', 'tcp_keepalives_interval', 'tcp_keepalives_count') ORDER BY name`)
      shown.push(...(rows as unknown[]))
    })
    expect(shown).toEqual([
      { name: 'tcp_keepalives_count', value: 4 },
      { name: 'tcp_keepalives_idle', value: 10 },
      { name: 'tcp_keepalives_interval', value: 5 },
    ])
  })

  it('in a transaction is not cut: neither a long statement nor a long pause between two', async () => {
    const request = await runningJob()
    const pauseS = (3 * statementDeadlineMs) / 1_000
    const slow = ship(proxied, request, async (tx) => {
      await tx.query('SELECT pg_sleep($1)', [pauseS])
      await database.query('SELECT pg_sleep($1)', [pauseS])
    })
    expect(await slow).toEqual({ kind: 'ran', result: '"shipped"' })
    expect(await parcels(request)).toBe(1)
  })

  it('waits longer for the row of its job than a statement of the sweep would', async () => {
    const request = await runningJob()
    const holder = new pg.Client(database.url)
    await holder.connect()
    await holder.query('BEGIN')
    await holder.query('SELECT 1 FROM chokaq.jobs_hot WHERE id = $1 FOR UPDATE', [request.lease.jobId])
    const shipped = ship(direct, request, async () => undefined)
    // Longer than the 200 ms of other statements.
    await holder.query('SELECT pg_sleep(0.4)')
    await holder.query('ROLLBACK')
    await holder.end()
    expect(await shipped).toEqual({ kind: 'ran', result: '"shipped"' })
  })
})
