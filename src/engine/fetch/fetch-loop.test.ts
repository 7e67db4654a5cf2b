import { describe, expect, test } from 'vitest'
import type { FetchedJob } from '../../core/job.ts'
import { createFakeRuntime } from '../../testing/fake-runtime.ts'
import { FetchLoop, type FetchLoopParts } from './fetch-loop.ts'

/** A loop over queues that hold so many jobs, with room for so many. */
function loopOf(stock: Record<string, number>, options: Partial<FetchLoopParts> & { room?: () => number } = {}) {
  const runtime = createFakeRuntime()
  const asking: (readonly string[])[] = []
  const asked: { queue: string; limit: number; atMs: number }[] = []
  const delivered: number[] = []
  const errors: unknown[] = []
  const loop = new FetchLoop({
    scheduler: runtime.scheduler,
    random: () => 0.5,
    queues: Object.keys(stock),
    pollMs: 1_000,
    room: () => 10,
    busy(queues) {
      asking.push(queues)
      return Promise.resolve(queues.filter((queue) => (stock[queue] ?? 0) > 0))
    },
    fetch(queue, limit) {
      asked.push({ queue, limit, atMs: runtime.clock.monotonicMs() })
      const count = Math.min(limit, stock[queue] ?? 0)
      stock[queue] = (stock[queue] ?? 0) - count
      return Promise.resolve(Array.from({ length: count }, () => ({}) as FetchedJob))
    },
    deliver: (jobs) => void delivered.push(jobs.length),
    onError: (error) => void errors.push(error),
    ...options,
  })
  return { runtime, loop, asking, asked, delivered, errors, stock }
}

describe('FetchLoop', () => {
  test('goes on at once while it gets all it asked for', async () => {
    const { runtime, loop, delivered, asked } = loopOf({ a: 25 })
    loop.start()
    await runtime.settle()
    expect(delivered).toEqual([10, 10, 5])
    expect(asked.at(-1)?.atMs).toBe(0)
    await loop.stop()
    expect(runtime.pendingTimerCount()).toBe(0)
  })

  test('polls: after a second, and while idle after two', async () => {
    const { runtime, loop, asked } = loopOf({ a: 0 })
    loop.start()
    await runtime.advance(9_000)
    expect(asked.map(({ atMs }) => atMs)).toEqual([0, 1_000, 3_000, 5_000, 7_000, 9_000])
    await loop.stop()
  })

  test('asks all of several queues in one question while idle, and then only those that have something', async () => {
    const { runtime, loop, asking, asked, stock } = loopOf({ a: 0, b: 0, c: 0 })
    loop.start()
    await runtime.advance(7_000)
    expect(asked.map(({ queue }) => queue)).toEqual(['a', 'b', 'c'])
    expect(asking).toEqual([
      ['b', 'c', 'a'],
      ['c', 'a', 'b'],
      ['a', 'b', 'c'],
      ['b', 'c', 'a'],
    ])
    stock['b'] = 3
    loop.kick()
    await runtime.settle()
    expect(asked.map(({ queue }) => queue)).toEqual(['a', 'b', 'c', 'b'])
    // It is not idle any more: the next round asks each of them.
    await runtime.advance(1_000)
    expect(asked.slice(4).map(({ queue }) => queue)).toEqual(['a', 'b', 'c'])
    await loop.stop()
  })

  test('kicks of one tick are one', async () => {
    const { runtime, loop, asked, stock } = loopOf({ a: 0 })
    loop.start()
    await runtime.settle()
    stock['a'] = 3
    for (let n = 0; n < 3; n += 1) loop.kickSoon()
    expect(asked).toHaveLength(1)
    await runtime.settle()
    expect(asked).toHaveLength(2)
    await loop.stop()
  })

  test('a kick ends the wait, and is not lost while a fetch is under way', async () => {
    const { runtime, loop, asked, stock } = loopOf({ a: 0 })
    loop.start()
    // The first fetch is under way: what the kick tells of must be looked for after it.
    stock['a'] = 3
    loop.kick()
    await runtime.settle()
    expect(asked.map(({ atMs }) => atMs)).toEqual([0, 0])
    await runtime.advance(400)
    loop.kick()
    await runtime.settle()
    expect(asked.at(-1)?.atMs).toBe(400)
    await loop.stop()
  })

  test('asks for nothing while there is no room, and again with the kick that makes some', async () => {
    let room = 0
    const { runtime, loop, asked } = loopOf({ a: 5 }, { room: () => room })
    loop.start()
    await runtime.advance(5_000)
    expect(asked).toEqual([])
    room = 2
    loop.kick()
    await runtime.settle()
    expect(asked.map(({ limit }) => limit)).toEqual([2, 2, 2])
    await loop.stop()
  })

  test('begins each round with the next queue', async () => {
    const { runtime, loop, asked } = loopOf({ a: 100, b: 100, c: 0 }, { room: () => 10 })
    await loop.once()
    await loop.once()
    await loop.once()
    await loop.once()
    expect(asked.map(({ queue }) => queue)).toEqual(['a', 'b', 'c', 'a', 'a'])
    expect(runtime.pendingTimerCount()).toBe(0)
  })

  test('waits longer after each error, up to five seconds, and recovers', async () => {
    let isDown = true
    let calls = 0
    const times: number[] = []
    const { runtime, loop, errors } = loopOf(
      { a: 0 },
      {
        fetch() {
          calls += 1
          times.push(runtime.clock.monotonicMs())
          return isDown ? Promise.reject(new Error('down')) : Promise.resolve([])
        },
      },
    )
    loop.start()
    await runtime.advance(30_000)
    const waits = times.slice(1).map((at, i) => at - (times[i] ?? 0))
    expect(waits.slice(0, 6)).toEqual([200, 400, 800, 1_600, 3_200, 5_000])
    expect(errors).toHaveLength(calls)
    isDown = false
    await runtime.advance(8_000)
    expect(errors.length).toBeLessThan(calls)
    await loop.stop()
  })

  test('stop resolves when the fetch under way has delivered, and nothing follows', async () => {
    let answer: (jobs: FetchedJob[]) => void = () => undefined
    const { runtime, loop, delivered } = loopOf({ a: 0 }, { fetch: () => new Promise((resolve) => (answer = resolve)) })
    loop.start()
    await runtime.settle()
    let stopped = false
    const stopping = loop.stop().then(() => (stopped = true))
    await runtime.settle()
    expect(stopped).toBe(false)
    answer([{} as FetchedJob])
    await stopping
    expect(delivered).toEqual([1])
    loop.kick()
    await runtime.advance(5_000)
    expect(delivered).toEqual([1])
    expect(runtime.pendingTimerCount()).toBe(0)
  })
})
