import type Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { openStorage, scratchPath, userHandle } from '../../../test/storage/scratch-sqlite.ts'
import type { StorageDriver } from '../../core/storage.ts'
import { newJob, policy } from '../../testing/conformance/new-job.ts'
import { createFakeRuntime, type FakeRuntime } from '../../testing/fake-runtime.ts'

interface Shop {
  readonly runtime: FakeRuntime
  readonly path: string
  readonly storage: StorageDriver
  readonly handle: Database.Database
}

/** A file shared by the jobs and an application, and the application's own handle on it. */
async function openShop(synchronous = 'FULL'): Promise<Shop> {
  const runtime = createFakeRuntime()
  const path = scratchPath()
  const storage = openStorage(path, runtime)
  await storage.ready()
  const handle = userHandle(path)
  handle.exec(`PRAGMA synchronous = ${synchronous}; CREATE TABLE orders (id INTEGER)`)
  return { runtime, path, storage, handle }
}

const errorOf = (call: () => unknown): unknown => {
  try {
    return call()
  } catch (error) {
    return error
  }
}

describe('enqueueSync', () => {
  it('commits with the rows of the application', async () => {
    const { runtime, storage, handle } = await openShop()
    const job = newJob(runtime)
    const verdicts = handle.transaction(() => {
      handle.exec('INSERT INTO orders VALUES (1)')
      return storage.enqueueSync(handle, [job])
    })()
    expect(verdicts).toEqual([{ kind: 'inserted' }])
    expect(await storage.inspector.get(job.id)).toMatchObject({ state: 'pending' })
  })

  it('rolls back with them, counts included', async () => {
    const { runtime, storage, handle } = await openShop()
    const job = newJob(runtime)
    const failing = handle.transaction(() => {
      storage.enqueueSync(handle, [job])
      throw new RangeError('the order is not valid')
    })
    expect(failing).toThrow('the order is not valid')
    expect(await storage.inspector.get(job.id)).toBeUndefined()
    expect(await storage.inspector.stats()).toEqual([])
  })

  it('works on a handle that reads integers as BigInt', async () => {
    const { runtime, storage, handle } = await openShop()
    handle.defaultSafeIntegers(true)
    const verdicts = handle.transaction(() => storage.enqueueSync(handle, [newJob(runtime), newJob(runtime)]))()
    expect(verdicts.map(({ kind }) => kind)).toEqual(['inserted', 'inserted'])
  })

  it('gives a refused row its own verdict and keeps the transaction alive', async () => {
    const { runtime, storage, handle } = await openShop()
    const jobs = [newJob(runtime, { priority: 5_000 }), newJob(runtime)]
    const verdicts = handle.transaction(() => storage.enqueueSync(handle, jobs))()
    expect(verdicts.map(({ kind }) => kind)).toEqual(['refused', 'inserted'])
  })

  it('wakes the workers of this process after the commit', async () => {
    const { runtime, storage, handle } = await openShop()
    let wakes = 0
    storage.onWake(() => (wakes += 1))
    handle.transaction(() => storage.enqueueSync(handle, [newJob(runtime)]))()
    await runtime.settle()
    expect(wakes).toBeGreaterThan(0)
  })

  it('says that another connection writes, instead of waiting inside the transaction', async () => {
    const { runtime, path, storage, handle } = await openShop()
    userHandle(path).exec('BEGIN IMMEDIATE')
    handle.exec('BEGIN')
    expect(errorOf(() => storage.enqueueSync(handle, [newJob(runtime)]))).toMatchObject({ code: 'CHOKAQ_STORAGE_BUSY' })
    handle.exec('ROLLBACK')
  })
})

describe('a handle that would break the promise', () => {
  it('is refused outside a transaction', async () => {
    const { runtime, storage, handle } = await openShop()
    expect(errorOf(() => storage.enqueueSync(handle, [newJob(runtime)]))).toMatchObject({
      code: 'CHOKAQ_NOT_IN_TRANSACTION',
    })
  })

  it('is refused where it does not flush its commits, and taken where durability is relaxed', async () => {
    const { runtime, path, storage, handle } = await openShop('NORMAL')
    handle.exec('BEGIN')
    expect(errorOf(() => storage.enqueueSync(handle, [newJob(runtime)]))).toMatchObject({
      code: 'CHOKAQ_NOT_DURABLE',
      details: { found: 'NORMAL' },
    })
    const relaxed = openStorage(path, runtime, { durability: 'relaxed' })
    expect(relaxed.enqueueSync(handle, [newJob(runtime)])).toEqual([{ kind: 'inserted' }])
    handle.exec('COMMIT')
  })

  it('is refused where its file has no tables, and where it is another file with tables', async () => {
    const { runtime, storage } = await openShop()
    const empty = userHandle(scratchPath())
    empty.exec('BEGIN')
    expect(errorOf(() => storage.enqueueSync(empty, [newJob(runtime)]))).toMatchObject({
      code: 'CHOKAQ_SCHEMA_MISSING',
    })
    const { handle: other } = await openShop()
    other.exec('BEGIN')
    expect(errorOf(() => storage.enqueueSync(other, [newJob(runtime)]))).toMatchObject({
      code: 'CHOKAQ_TX_UNSUPPORTED',
    })
  })

  it('is refused where the jobs are in memory', async () => {
    const { runtime, handle } = await openShop()
    const storage = openStorage(':memory:', runtime)
    handle.exec('BEGIN')
    expect(errorOf(() => storage.enqueueSync(handle, [newJob(runtime)]))).toMatchObject({
      code: 'CHOKAQ_TX_UNSUPPORTED',
    })
  })

  it('is refused where it is none, and after close', async () => {
    const { runtime, storage, handle } = await openShop()
    for (const value of [undefined, null, 'jobs.db', {}, { query: () => undefined }]) {
      expect(errorOf(() => storage.enqueueSync(value, [newJob(runtime)]))).toMatchObject({
        code: 'CHOKAQ_TX_UNSUPPORTED',
      })
    }
    await storage.close()
    handle.exec('BEGIN')
    expect(errorOf(() => storage.enqueueSync(handle, [newJob(runtime)]))).toMatchObject({
      code: 'CHOKAQ_STORAGE_CLOSED',
    })
  })
})

describe('completeSync', () => {
  const action = {
    kind: 'complete',
    result: '{"ok":true}',
    markerLifeMs: 1_000,
    keep: { kind: 'full' },
    children: [],
  } as const

  async function running({ runtime, storage }: Shop) {
    await storage.enqueue([newJob(runtime)])
    const policies = [policy({ fastStart: true })]
    const [job] = await storage.fetch({ workerId: 'worker', queue: 'default', limit: 1, policies })
    return job?.lease ?? { jobId: '', token: 0 }
  }

  it('commits the completion with the rows of the application', async () => {
    const shop = await openShop()
    const lease = await running(shop)
    const verdict = shop.handle.transaction(() => shop.storage.completeSync(shop.handle, { lease, action }))()
    expect(verdict).toEqual({ kind: 'settled', outcome: 'completed', repeated: false })
    expect(await shop.storage.inspector.get(lease.jobId)).toMatchObject({ pillar: 'archive', result: '{"ok":true}' })
  })

  it('undoes it with them', async () => {
    const shop = await openShop()
    const lease = await running(shop)
    shop.handle.exec('BEGIN')
    shop.storage.completeSync(shop.handle, { lease, action })
    shop.handle.exec('ROLLBACK')
    expect(await shop.storage.inspector.get(lease.jobId)).toMatchObject({ state: 'processing' })
  })

  it('says lost to a stale owner', async () => {
    const shop = await openShop()
    const { jobId, token } = await running(shop)
    shop.handle.exec('BEGIN')
    const stale = { lease: { jobId, token: token + 1 }, action }
    expect(shop.storage.completeSync(shop.handle, stale)).toEqual({ kind: 'lost' })
    shop.handle.exec('COMMIT')
  })
})
