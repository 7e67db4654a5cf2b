// Holes in how an attempt ends: what a handler came to is recorded once, truly, and whatever happens meanwhile.
import { createWorker } from 'chokaq/worker'
import { expect, test } from 'vitest'
import { capture, capturing, resize, resizing, unguarded } from '../engine/contracts.ts'
import { sqliteInMemory } from '../engine/sqlite-storage.ts'
import { ada, codeOf, gate, worlds } from '../engine/world.ts'

const open = worlds(sqliteInMemory)

test('H2 a job that was aborted by a shutdown is given back at no cost, and runs again', async () => {
  const world = open()
  const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
  const begun = gate()
  const worker = await world.start([
    capturing(async (_p, ctx) => {
      const { signal } = ctx as { readonly signal: AbortSignal }
      begun.open()
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          reject(signal.reason as Error)
        })
      })
    }),
  ])
  await world.runtime.complete(begun.promise)
  await world.stop(worker, { force: true })
  expect(await world.job(id)).toMatchObject({ state: 'pending', failureCount: 0, crashCount: 0 })
  await world.drain([capturing()])
  expect(await world.job(id)).toMatchObject({ state: 'completed', result: '{"chargeId":"ch_p1"}' })
})

test('H2 a timeout is recorded although the signal of its handler is aborted', async () => {
  const world = open()
  const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
  await world.drain([resizing(() => new Promise(() => undefined), { timeout: 100, retry: { attempts: 1 } })])
  expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'Timeout', failureCount: 1 })
})

test('H3 a storage that is away while a handler fails does not replace what the handler said', async () => {
  const world = open()
  const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
  let cuts = 0
  world.fault = (call) => (call === 'settle' && (cuts += 1) <= 3 ? 'before' : 'none')
  const fails = async (): Promise<never> => {
    throw new TypeError('the card reader is on fire')
  }
  await world.drain([resizing(fails, { retry: { attempts: 1 } })])
  expect(cuts).toBeGreaterThan(3)
  const job = await world.job(id)
  expect(job).toMatchObject({ state: 'dead', reason: 'MaxRetriesExceeded', failureCount: 1 })
  expect(job.failure).toMatchObject({ name: 'TypeError', message: 'the card reader is on fire' })
})

test('H4 a handler that returns after its timeout has finished, and its result counts', async () => {
  const world = open()
  const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
  const late = async (): Promise<object> => {
    await new Promise<void>((resolve) => void world.runtime.scheduler.after(150, resolve))
    return { chargeId: 'ch_late' }
  }
  await world.drain([capturing(late, { timeout: 100 })])
  expect(world.of('job.aborted')).toMatchObject([{ by: 'timeout' }])
  expect(await world.job(id)).toMatchObject({ state: 'completed', attempt: 1, result: '{"chargeId":"ch_late"}' })
})

test('H4 a completion outlives a storage that is away for longer than the timeout', async () => {
  const world = open()
  const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
  const untilMs = world.runtime.clock.monotonicMs() + 5_000
  world.fault = (call) => (call === 'settle' && world.runtime.clock.monotonicMs() < untilMs ? 'before' : 'none')
  await world.drain([capturing(undefined, { timeout: 100 })])
  expect(await world.job(id)).toMatchObject({ state: 'completed', attempt: 1 })
})

test('H6 windows that do not fit refuse the worker before any job of it runs', async () => {
  const world = open()
  const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
  const worker = createWorker({ chokaq: world.chokaq, handlers: [capturing()], archiveRetention: '1h' })
  expect(await codeOf(world.runtime.complete(worker.start()))).toBe('CHOKAQ_BOOT_REFUSED')
  expect(await world.job(id)).toMatchObject({ state: 'pending', attempt: 0 })
})

test('H9 the reply to a completion is lost: it is read back, and nothing happens twice', async () => {
  const world = open()
  const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
  let cut = false
  world.fault = (call) => {
    if (call !== 'settle' || cut) return 'none'
    cut = true
    return 'after'
  }
  await world.drain([capturing()])
  expect(await world.job(id)).toMatchObject({ state: 'completed', attempt: 1 })
  expect(world.of('job.completed')).toMatchObject([{ repeated: true }])
  expect(await world.counter('jobs.completed')).toBe(1)
})

test('H22 H30 a review handler that throws may have acted: its key stays held until a person decides', async () => {
  const world = open()
  const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
  let runs = 0
  const times = async (): Promise<never> => {
    runs += 1
    throw new Error('socket hang up')
  }
  await world.drain([unguarded(times)])
  expect(runs).toBe(1)
  expect(await world.job(id)).toMatchObject({ state: 'dead', inDoubt: true })
  expect(await world.chokaq.enqueue(capture, { paymentId: 'p1' })).toEqual({ outcome: 'already-in-review', id })
  expect(await world.chokaq.dlq.resurrect(id, { mode: 'continue' }, ada)).toEqual({ kind: 'in-doubt' })
})

test('H23 a storage that is away before a handler runs costs no attempt', async () => {
  const world = open()
  const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
  let cuts = 0
  world.fault = (call) =>
    (call === 'start' || call === 'fetch') && (cuts += 1) % 2 === 1 && cuts < 6 ? 'before' : 'none'
  const worker = await world.start([unguarded(async () => ({ chargeId: 'ch_1' }))])
  await world.runtime.runUntil(async () => (await world.state(id)) === 'completed')
  await world.stop(worker)
  expect(cuts).toBeGreaterThan(1)
  expect(await world.job(id)).toMatchObject({ attempt: 1, failureCount: 0, crashCount: 0 })
  // Asked again for the same job, and not found later as one whose reply was lost.
  expect(world.of('worker.disowned')).toEqual([])
})

test('H32 a completion counts by what the storage says: a lost lease is no success', async () => {
  const world = open()
  const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
  const taken = async (): Promise<void> => {
    const [beat] = await world.driver.readBeats()
    await world.driver.rescue({ deadWorkerIds: [beat?.workerId ?? ''], limit: 10 })
  }
  const worker = world.worker([resizing(taken)])
  await world.runtime.complete(worker.tick())
  expect(world.of('job.completed')).toEqual([])
  expect(world.of('job.lease_lost')).toMatchObject([{ jobId: id, at: 'settle' }])
  expect(await world.counter('jobs.completed')).toBe(0)
  expect(await world.state(id)).toBe('pending')
})
