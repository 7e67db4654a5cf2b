// I25: a stop is clean. What runs may finish, what never started goes back, and nothing is left.
import { describe, expect, test } from 'vitest'
import type { ChokaQError } from 'chokaq'
import { resize, resizing } from './contracts.ts'
import { sqliteInMemory } from './sqlite-storage.ts'
import { storages } from './storages.ts'
import { gate, worlds } from './world.ts'

describe.each(storages)('stop on $name', (kind) => {
  const open = worlds(kind)

  test('of an idle worker is done at once and leaves no row and no timer', async () => {
    const world = open()
    const worker = await world.start([resizing(async () => 1)])
    await world.runtime.advance(60_000)
    const beforeMs = world.runtime.clock.monotonicMs()
    await world.stop(worker)
    expect(world.runtime.clock.monotonicMs() - beforeMs).toBeLessThanOrEqual(50)
    expect(await world.chokaq.insight.workers()).toEqual([])
    await world.chokaq.close()
    expect(world.runtime.pendingTimerCount()).toBe(0)
  })

  test('lets what runs finish and gives back what waits in the buffer, at no cost', async () => {
    const world = open()
    const go = gate()
    const { id: running } = await world.chokaq.enqueue(resize, { id: 'running' })
    const { id: buffered } = await world.chokaq.enqueue(resize, { id: 'buffered' })
    const worker = await world.start([resizing(() => go.promise)], { concurrency: 1 })
    await world.runtime.settle()
    const stopping = worker.stop()
    await world.runtime.settle()
    expect(await world.job(buffered)).toMatchObject({ state: 'pending', attempt: 0, crashCount: 0, fetchCrashCount: 0 })
    expect(world.of('job.released')).toMatchObject([{ jobId: buffered, why: 'shutdown' }])
    await world.runtime.advance(10_000)
    go.open()
    await world.runtime.complete(stopping)
    expect(await world.state(running)).toBe('completed')
    expect(await world.state(buffered)).toBe('pending')
    expect(world.of('job.aborted')).toEqual([])
  })

  test('aborts after the grace; a handler that listens goes back free', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    let reason: ChokaQError | undefined
    const handler = resizing(
      (_p, ctx) =>
        new Promise((_resolve, reject) => {
          ctx.signal.addEventListener('abort', () => {
            reason = ctx.signal.reason as ChokaQError
            reject(reason)
          })
        }),
    )
    const worker = await world.start([handler])
    await world.runtime.settle()
    const startMs = world.runtime.clock.monotonicMs()
    await world.stop(worker)
    expect(world.runtime.clock.monotonicMs() - startMs).toBe(20_000)
    expect(reason?.code).toBe('CHOKAQ_SHUTDOWN')
    expect(await world.job(id)).toMatchObject({ state: 'pending', failureCount: 0, crashCount: 0, attempt: 1 })
  })

  test('abandons a deaf handler within grace and abort grace', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    const late = gate()
    const worker = await world.start([resizing(() => late.promise)], { shutdownGrace: '5s', abortGrace: '2s' })
    await world.runtime.settle()
    const startMs = world.runtime.clock.monotonicMs()
    await world.stop(worker)
    expect(world.runtime.clock.monotonicMs() - startMs).toBe(7_000)
    expect(await world.job(id)).toMatchObject({ state: 'pending', failureCount: 0 })
    late.open()
    await world.runtime.settle()
    expect(await world.job(id)).toMatchObject({ state: 'pending', result: null })
  })

  test('with force aborts at once; a second stop with it hurries the first, a third is harmless', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    const handler = resizing(
      (_p, ctx) =>
        new Promise((_resolve, reject) => {
          ctx.signal.addEventListener('abort', () => {
            reject(new Error('stopped'))
          })
        }),
    )
    const worker = await world.start([handler])
    await world.runtime.settle()
    const startMs = world.runtime.clock.monotonicMs()
    const first = worker.stop()
    await world.runtime.advance(1_000)
    expect(await world.state(id)).toBe('processing')
    const all = Promise.all([first, worker.stop({ force: true }), worker.stop({ force: true }), worker.stop()])
    await world.runtime.complete(all)
    expect(world.runtime.clock.monotonicMs() - startMs).toBe(1_000)
    expect(await world.state(id)).toBe('pending')
  })

  test('waits for a fetch under way and gives its jobs back', async () => {
    const world = open()
    const worker = await world.start([resizing(async () => 1)])
    await world.runtime.settle()
    const { driver } = world
    const fetch = driver.fetch.bind(driver)
    const reply = gate()
    driver.fetch = async (request) => {
      const jobs = await fetch(request)
      await reply.promise
      return jobs
    }
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    await world.runtime.settle()
    expect((await world.job(id)).workerId).toBe(worker.id)
    let stopped = false
    const stopping = worker.stop().then(() => (stopped = true))
    await world.runtime.settle()
    expect(stopped).toBe(false)
    reply.open()
    await world.runtime.complete(stopping)
    expect(await world.job(id)).toMatchObject({ state: 'pending', workerId: null, attempt: 0, fetchCrashCount: 0 })
    expect(await world.chokaq.insight.workers()).toEqual([])
  })

  test('released jobs start elsewhere within seconds', async () => {
    const world = open()
    const go = gate()
    await world.chokaq.enqueue(resize, { id: 'long' })
    const { id } = await world.chokaq.enqueue(resize, { id: 'next' })
    const handler = resizing((p) => (p.id === 'long' ? go.promise : Promise.resolve('ran')))
    const first = await world.start([handler], { concurrency: 1 })
    await world.runtime.settle()
    const second = await world.start([handler], { concurrency: 1 })
    const stopping = first.stop()
    await world.runtime.advance(2_000)
    expect(await world.state(id)).toBe('completed')
    go.open()
    await world.runtime.complete(stopping)
    await world.stop(second)
  })
})

describe('stop at an odd moment', () => {
  const open = worlds(sqliteInMemory)

  test('before the start: the start is then refused', async () => {
    const world = open()
    const worker = world.worker([resizing(async () => 1)])
    await worker.stop()
    expect(worker.state).toBe('stopped')
    await expect(worker.start()).rejects.toMatchObject({ code: 'CHOKAQ_WORKER_STATE' })
  })

  test('during the start leaves nothing behind', async () => {
    const world = open()
    const worker = world.worker([resizing(async () => 1)])
    const starting = worker.start()
    const stopping = worker.stop()
    await world.runtime.complete(Promise.all([starting, stopping]))
    expect(worker.state).toBe('stopped')
    expect(await world.chokaq.insight.workers()).toEqual([])
    expect(world.of('worker.started')).toEqual([])
  })

  test('while the storage is away ends within its bounds, and nothing is offered for ever', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    const go = gate()
    const worker = await world.start([resizing(() => go.promise)], { shutdownGrace: '1s', abortGrace: '1s' })
    await world.runtime.settle()
    world.fault = () => 'before'
    go.open()
    await world.runtime.advance(100)
    const startMs = world.runtime.clock.monotonicMs()
    await world.stop(worker)
    expect(world.runtime.clock.monotonicMs() - startMs).toBeLessThanOrEqual(8_000)
    await world.runtime.advance(5_000)
    const failures = world.of('storage.failed').length
    await world.runtime.advance(60_000)
    expect(world.of('storage.failed').length).toBe(failures)
    world.fault = () => 'none'
    expect(await world.state(id)).toBe('processing')
  })

  test('while the storage hangs ends within its bounds', async () => {
    const world = open()
    const worker = await world.start([resizing(async () => 1)])
    await world.runtime.settle()
    world.fault = () => 'hang'
    await world.runtime.advance(7_000)
    const startMs = world.runtime.clock.monotonicMs()
    await world.stop(worker)
    expect(world.runtime.clock.monotonicMs() - startMs).toBeLessThanOrEqual(15_000)
  })

  test('200 times, at every stage of a start', async () => {
    const world = open()
    await world.chokaq.enqueueMany(
      resize,
      Array.from({ length: 100 }, (_, i) => ({ id: String(i) })),
    )
    for (let round = 0; round < 200; round += 1) {
      const worker = world.worker([resizing(async () => 1)], { concurrency: 2 })
      const starting = worker.start()
      for (let turn = 0; turn < round % 9; turn += 1) await new Promise((resolve) => setImmediate(resolve))
      await world.runtime.complete(Promise.all([starting, worker.stop({ force: round % 2 === 0 })]))
      expect(worker.state).toBe('stopped')
    }
    expect(await world.chokaq.insight.workers()).toEqual([])
    const waiting = (await world.chokaq.jobs.list('hot', { limit: 500 })).jobs
    expect(waiting.every((job) => job.workerId === null && job.crashCount === 0)).toBe(true)
    expect(waiting.length + (await world.counter('jobs.completed'))).toBe(100)
  })
})
