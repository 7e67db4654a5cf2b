// Pauses, limits, concurrency, suspects, and which queues a worker serves.
import { describe, expect, test } from 'vitest'
import { resize, resizing } from './contracts.ts'
import { sharedStorages, storages } from './storages.ts'
import { ada, codeOf, gate, worlds } from './world.ts'

describe.each(storages)('outcomes under way on $name', (kind) => {
  const open = worlds(kind)

  test('hold up the next fetch only where they are more than one buffer', async () => {
    const world = open()
    let ranCount = 0
    const handler = resizing(async () => void (ranCount += 1))
    await world.chokaq.enqueueMany(
      resize,
      Array.from({ length: 20 }, (_, n) => ({ id: String(n) })),
    )
    world.fault = (call) => (call === 'settle' ? 'hang' : 'none')
    const worker = await world.start([handler], { concurrency: 2, prefetch: 4 })
    await world.runtime.advance(3_000)
    // Two buffers, and the half that was asked for before the second one had run.
    expect(ranCount).toBe(10)
    world.fault = () => 'none'
    await world.runtime.advance(20_000)
    expect(ranCount).toBe(20)
    await world.stop(worker)
  })
})

describe.each(storages)('a paused queue on $name', (kind) => {
  const open = worlds(kind)

  test('starts nothing until it is resumed; what runs goes on', async () => {
    const world = open()
    const go = gate()
    const ran: string[] = []
    const handler = resizing(async (p) => {
      ran.push(p.id)
      if (p.id === 'running') await go.promise
    })
    const running = await world.chokaq.enqueue(resize, { id: 'running' })
    const worker = await world.start([handler])
    await world.runtime.settle()
    await world.chokaq.queues.pause('default', ada)
    const waiting = await world.chokaq.enqueue(resize, { id: 'waiting' })
    await world.runtime.advance(60_000)
    go.open()
    await world.runtime.settle()
    expect(await world.state(running.id)).toBe('completed')
    expect(await world.state(waiting.id)).toBe('pending')
    expect(await world.chokaq.queues.list()).toMatchObject([{ name: 'default', paused: true, pendingCount: 1 }])
    await world.chokaq.queues.resume('default', ada)
    await world.runtime.advance(3_000)
    expect(ran).toEqual(['running', 'waiting'])
    await world.stop(worker)
  })

  test('takes back what a worker holds in its gate', async () => {
    const world = open()
    // A suspect takes the gate; the pause comes between its fetch and its start.
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    const go = gate()
    let runs = 0
    const handler = resizing(async () => {
      runs += 1
      if (runs === 1) await go.promise
    })
    const first = await world.start([handler])
    await world.runtime.settle()
    await world.driver.rescue({ deadWorkerIds: [first.id], provenDeadIds: [], limit: 10 })
    expect((await world.job(id)).state).toBe('pending')
    go.open()
    let paused = false
    world.fault = (call) => {
      if (call === 'start' && !paused) {
        paused = true
        void world.chokaq.queues.pause('default', ada)
        return 'before'
      }
      return 'none'
    }
    await world.runtime.advance(1_000)
    expect(paused).toBe(true)
    expect(await world.job(id)).toMatchObject({ state: 'pending', attempt: 1 })
    expect(world.of('job.released')).toMatchObject([{ jobId: id, why: 'paused' }])
    expect(runs).toBe(1)
  })
})

describe.each(storages)('concurrency on $name', (kind) => {
  const open = worlds(kind)

  test('is never exceeded, and may change at run time', async () => {
    const world = open()
    let running = 0
    let most = 0
    const gates: (() => void)[] = []
    const handler = resizing(async () => {
      running += 1
      most = Math.max(most, running)
      const go = gate()
      gates.push(() => {
        go.open()
      })
      await go.promise
      running -= 1
    })
    await world.chokaq.enqueueMany(
      resize,
      Array.from({ length: 30 }, (_, i) => ({ id: String(i) })),
    )
    const worker = await world.start([handler], { concurrency: 3 })
    await world.runtime.settle()
    expect([running, worker.runningCount]).toEqual([3, 3])
    worker.setConcurrency(8)
    await world.runtime.settle()
    expect(running).toBe(8)
    worker.setConcurrency(1)
    for (const open of gates.splice(0)) open()
    await world.runtime.settle()
    expect(running).toBe(1)
    expect(most).toBe(8)
    expect(() => {
      worker.setConcurrency(0)
    }).toThrow(/concurrency is 0/)
    worker.setConcurrency(1_000)
    for (let i = 0; i < 40; i += 1) {
      for (const open of gates.splice(0)) open()
      await world.runtime.settle()
    }
    expect(await world.counter('jobs.completed')).toBe(30)
    await world.stop(worker)
  })

  test('of one leaves the next jobs to other workers after a heartbeat', async () => {
    const world = open()
    const go = gate()
    const busy = resizing(async (p) => {
      if (p.id === 'long') await go.promise
    })
    await world.chokaq.enqueue(resize, { id: 'long' })
    const other = await world.chokaq.enqueue(resize, { id: 'other' })
    const worker = await world.start([busy], { concurrency: 1 })
    await world.runtime.advance(4_000)
    expect(await world.state(other.id)).toBe('processing')
    await world.runtime.advance(60_000)
    // It went back once, with the attempt of its fast start, and was not fetched ahead again and again.
    expect(await world.job(other.id)).toMatchObject({ state: 'pending', attempt: 0 })
    expect(world.of('job.released')).toMatchObject([{ jobId: other.id, why: 'buffered too long' }])
    go.open()
    await world.runtime.advance(3_000)
    expect(await world.state(other.id)).toBe('completed')
    await world.stop(worker)
  })

  test('of suspects is one in each worker, and healthy jobs go on beside them', async () => {
    const world = open()
    await world.chokaq.enqueueMany(resize, [{ id: 's1' }, { id: 's2' }, { id: 's3' }])
    const stuck = gate()
    let suspects = 0
    let most = 0
    const gates: (() => void)[] = []
    const handler = resizing(async (p, ctx) => {
      if (ctx.attempt === 1 && p.id.startsWith('s')) return stuck.promise
      if (!p.id.startsWith('s')) return undefined
      suspects += 1
      most = Math.max(most, suspects)
      const go = gate()
      gates.push(() => {
        go.open()
      })
      await go.promise
      suspects -= 1
      return undefined
    })
    const worker = await world.start([handler])
    await world.runtime.settle()
    await world.driver.rescue({ deadWorkerIds: [worker.id], provenDeadIds: [], limit: 10 })
    stuck.open()
    const healthy = await world.chokaq.enqueue(resize, { id: 'healthy' })
    await world.runtime.settle()
    expect(suspects).toBe(1)
    expect(await world.state(healthy.id)).toBe('completed')
    for (let i = 0; i < 3; i += 1) {
      for (const open of gates.splice(0)) open()
      await world.runtime.settle()
    }
    expect(most).toBe(1)
    expect(await world.counter('jobs.completed')).toBe(4)
    await world.stop(worker)
  })
})

describe.each(storages)('queues on $name', (kind) => {
  const open = worlds(kind)

  test('are served in rotation: a full one starves no other', async () => {
    const world = open()
    const order: string[] = []
    await world.chokaq.enqueueMany(
      resize,
      Array.from({ length: 50 }, () => ({ id: 'big' })),
      { queue: 'big' },
    )
    await world.chokaq.enqueue(resize, { id: 'small' }, { queue: 'small' })
    await world.drain([resizing(async (p) => void order.push(p.id))], { concurrency: 1, queues: ['big', 'small'] })
    expect(order.indexOf('small')).toBeLessThan(10)
    expect(order).toHaveLength(51)
  })

  test('that a worker does not serve wait for one that does', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' }, { queue: 'elsewhere' })
    expect(await world.drain([resizing(async () => 1)])).toBe(0)
    expect(await world.drain([resizing(async () => 1)], { queues: ['elsewhere'] })).toBe(1)
    expect(await world.state(id)).toBe('completed')
  })
})

describe.each(storages)('a global limit on $name', (kind) => {
  const open = worlds(kind)

  test('refuses what is no number of jobs', async () => {
    const world = open()
    for (const limit of [0, -1, 1.5, Number.NaN, 2_000_000]) {
      const call = async (): Promise<void> => world.chokaq.queues.limit('default', limit, ada)
      expect(await codeOf(call())).toBe('CHOKAQ_OPTION_INVALID')
    }
  })
})

describe.each(sharedStorages)('a global limit on $name, over two workers', (kind) => {
  const open = worlds(kind)

  test('holds for all of them together and is usable in full after a crash', async () => {
    const world = open()
    await world.chokaq.queues.limit('default', 3, ada)
    let running = 0
    let most = 0
    const handler = resizing(async () => {
      running += 1
      most = Math.max(most, running)
      await new Promise<void>((resolve) => world.runtime.scheduler.after(500, resolve))
      running -= 1
    })
    await world.chokaq.enqueueMany(
      resize,
      Array.from({ length: 40 }, (_, i) => ({ id: String(i) })),
    )
    const workers = [
      await world.start([handler]),
      await world.start([handler], { chokaq: world.client(), name: 'second' }),
    ]
    await world.runtime.advance(20_000)
    expect(most).toBe(3)
    expect(await world.counter('jobs.completed')).toBe(40)
    await world.chokaq.queues.limit('default', null, ada)
    await world.chokaq.enqueueMany(
      resize,
      Array.from({ length: 60 }, (_, i) => ({ id: String(i) })),
    )
    await world.runtime.advance(5_000)
    expect(most).toBe(20)
    for (const worker of workers) await world.stop(worker)
  })
})
