import { describe, expect, it } from 'vitest'
import { openStorage, scratchPath, userHandle } from '../../../test/storage/scratch-sqlite.ts'
import { newJob } from '../../testing/conformance/new-job.ts'
import { createFakeRuntime } from '../../testing/fake-runtime.ts'

const verdictsOf = async (calls: readonly Promise<unknown>[]): Promise<unknown[]> =>
  (await Promise.allSettled(calls)).map((call) =>
    call.status === 'fulfilled' ? call.value : (call.reason as { readonly code?: unknown }).code,
  )

describe("another connection's write lock", () => {
  it('is waited for without stopping the event loop', async () => {
    const runtime = createFakeRuntime()
    const path = scratchPath()
    const storage = openStorage(path, runtime)
    await storage.ready()
    const other = userHandle(path)
    other.exec('BEGIN IMMEDIATE')
    let isDone = false
    const call = storage.enqueue([newJob(runtime)]).finally(() => (isDone = true))
    await runtime.advance(1_000)
    expect(isDone).toBe(false)
    other.exec('COMMIT')
    await runtime.advance(5)
    expect(await call).toEqual([{ kind: 'inserted' }])
  })

  it('keeps the order of the calls that wait', async () => {
    const runtime = createFakeRuntime()
    const path = scratchPath()
    const storage = openStorage(path, runtime)
    await storage.ready()
    const other = userHandle(path)
    other.exec('BEGIN IMMEDIATE')
    const jobs = Array.from({ length: 20 }, () => newJob(runtime))
    const order: string[] = []
    const calls = jobs.map((job) => storage.enqueue([job]).then(() => order.push(job.id)))
    await runtime.advance(50)
    other.exec('COMMIT')
    await runtime.advance(50)
    await Promise.all(calls)
    expect(order).toEqual(jobs.map(({ id }) => id))
  })

  it('ends in CHOKAQ_STORAGE_BUSY at the deadline, and nothing was written', async () => {
    const runtime = createFakeRuntime()
    const path = scratchPath()
    const storage = openStorage(path, runtime, { busyDeadlineMs: 200 })
    await storage.ready()
    const other = userHandle(path)
    other.exec('BEGIN IMMEDIATE')
    const verdicts = verdictsOf([storage.enqueue([newJob(runtime)]), storage.enqueue([newJob(runtime)])])
    await runtime.advance(210)
    expect(await verdicts).toEqual(['CHOKAQ_STORAGE_BUSY', 'CHOKAQ_STORAGE_BUSY'])
    other.exec('COMMIT')
    expect(other.prepare('SELECT count(*) AS n FROM chokaq_jobs_hot').get()).toEqual({ n: 0 })
  })

  it('is waited for while opening, too', async () => {
    const runtime = createFakeRuntime()
    const path = scratchPath()
    const other = userHandle(path)
    other.exec('PRAGMA journal_mode = WAL; CREATE TABLE orders (id INTEGER); BEGIN IMMEDIATE')
    const storage = openStorage(path, runtime)
    const opening = storage.ready()
    await runtime.advance(500)
    other.exec('COMMIT')
    await runtime.advance(5)
    await opening
    expect(other.prepare('SELECT version FROM chokaq_migrations').get()).toEqual({ version: 1 })
  })

  it('does not hold up an idle fetch: looking takes no write lock', async () => {
    const runtime = createFakeRuntime()
    const path = scratchPath()
    const storage = openStorage(path, runtime)
    await storage.ready()
    userHandle(path).exec('BEGIN IMMEDIATE')
    const policies = [{ type: 'mail.send.v1' }] as never
    expect(await storage.fetch({ workerId: 'w', queue: 'default', limit: 10, policies })).toEqual([])
    expect(await storage.promote({ limit: 10 })).toEqual({ promotedCount: 0, nextDueInMs: undefined })
    expect(await storage.rescue({ deadWorkerIds: [], limit: 10 })).toEqual([])
  })

  it('does not hold up those that read, not even behind a call that waits for the lock', async () => {
    const runtime = createFakeRuntime()
    const path = scratchPath()
    const storage = openStorage(path, runtime)
    const job = newJob(runtime)
    await storage.enqueue([job])
    const other = userHandle(path)
    other.exec('BEGIN IMMEDIATE')
    const waiting = storage.enqueue([newJob(runtime)])
    expect(await storage.inspector.get(job.id)).toMatchObject({ state: 'pending' })
    other.exec('COMMIT')
    await runtime.advance(5)
    expect(await waiting).toEqual([{ kind: 'inserted' }])
  })

  it('leaves the calls that wait with an answer when the storage closes', async () => {
    const runtime = createFakeRuntime()
    const path = scratchPath()
    const storage = openStorage(path, runtime)
    await storage.ready()
    userHandle(path).exec('BEGIN IMMEDIATE')
    const verdicts = verdictsOf([storage.enqueue([newJob(runtime)]), storage.enqueue([newJob(runtime)])])
    await runtime.settle()
    await storage.close()
    expect(await verdicts).toEqual(['CHOKAQ_STORAGE_CLOSED', 'CHOKAQ_STORAGE_CLOSED'])
  })
})

describe('a row that the database refuses', () => {
  it('gets its own verdict, and its neighbours keep theirs', async () => {
    const runtime = createFakeRuntime()
    const storage = openStorage(scratchPath(), runtime)
    const jobs = [newJob(runtime), newJob(runtime, { priority: 5_000 }), newJob(runtime)]
    const verdicts = await storage.enqueue(jobs)
    expect(verdicts.map(({ kind }) => kind)).toEqual(['inserted', 'refused', 'inserted'])
    expect(await storage.inspector.stats()).toEqual([
      { name: 'jobs.enqueued', queue: 'default', type: 'mail.send.v1', label: '', value: 2 },
    ])
  })
})
