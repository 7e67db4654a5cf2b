import { describe, expect, test } from 'vitest'
import { createFakeRuntime } from './fake-runtime.ts'
import { FakeTimeError } from './fake-scheduler.ts'

describe('the clocks', () => {
  test('start where they are told and stand still by themselves', async () => {
    const runtime = createFakeRuntime({ startMs: 5000 })
    await new Promise((resolve) => setImmediate(resolve))
    expect(runtime.clock.nowMs()).toBe(5000)
    expect(runtime.clock.monotonicMs()).toBe(0)
  })

  test('advance moves both; a step moves the wall clock alone', async () => {
    const runtime = createFakeRuntime({ startMs: 5000 })
    await runtime.advance(250)
    runtime.stepWallClock(-1000)
    expect(runtime.clock.nowMs()).toBe(4250)
    expect(runtime.clock.monotonicMs()).toBe(250)
  })

  test('time never moves backwards', async () => {
    await expect(createFakeRuntime().advance(-1)).rejects.toThrow(FakeTimeError)
    await expect(createFakeRuntime().advance(Number.NaN)).rejects.toThrow(FakeTimeError)
  })
})

describe('the scheduler', () => {
  test('timers run in the order of their times, then of their making', async () => {
    const runtime = createFakeRuntime()
    const ran: string[] = []
    runtime.scheduler.after(20, () => ran.push('20'))
    runtime.scheduler.after(10, () => ran.push('10 first'))
    runtime.scheduler.after(10, () => ran.push('10 second'))
    await runtime.advance(19)
    expect(ran).toEqual(['10 first', '10 second'])
    await runtime.advance(1)
    expect(ran).toEqual(['10 first', '10 second', '20'])
    expect(runtime.pendingTimerCount()).toBe(0)
  })

  test('a timer sees its own time, and what follows from it happens at that time', async () => {
    const runtime = createFakeRuntime({ startMs: 0 })
    const seen: number[] = []
    runtime.scheduler.after(10, () => {
      void (async () => {
        await Promise.resolve()
        await new Promise((resolve) => setImmediate(resolve))
        seen.push(runtime.clock.nowMs())
        runtime.scheduler.after(5, () => seen.push(runtime.clock.nowMs()))
      })()
    })
    runtime.scheduler.after(12, () => seen.push(runtime.clock.nowMs()))
    await runtime.advance(100)
    expect(seen).toEqual([10, 12, 15])
    expect(runtime.clock.nowMs()).toBe(100)
  })

  test('a cancelled timer does not run', async () => {
    const runtime = createFakeRuntime()
    const ran: string[] = []
    const timer = runtime.scheduler.after(10, () => ran.push('cancelled'))
    timer.cancel()
    timer.cancel()
    await runtime.advance(100)
    expect(ran).toEqual([])
  })

  test('a delay beyond 2^31 ms waits as long as a timer can, and does not fire at once', async () => {
    const runtime = createFakeRuntime()
    const ran: string[] = []
    runtime.scheduler.after(2 ** 40, () => ran.push('fired'))
    await runtime.advance(2 ** 31 - 2)
    expect(ran).toEqual([])
    await runtime.advance(1)
    expect(ran).toEqual(['fired'])
  })

  test('deferred tasks run at the end of the tick, without time, before the next timer', async () => {
    const runtime = createFakeRuntime()
    const ran: string[] = []
    runtime.scheduler.after(0, () => ran.push('timer'))
    runtime.scheduler.defer(() => {
      ran.push('first')
      runtime.scheduler.defer(() => ran.push('third'))
    })
    runtime.scheduler.defer(() => ran.push('second'))
    expect(ran).toEqual([])
    await runtime.advance(0)
    expect(ran).toEqual(['first', 'second', 'third', 'timer'])
  })

  test('a promise that waits for a deferred task settles without time', async () => {
    const runtime = createFakeRuntime()
    await expect(new Promise<string>((resolve) => runtime.scheduler.defer(() => resolve('done')))).resolves.toBe('done')
  })

  test('an error of a task reaches whoever moves time', async () => {
    const runtime = createFakeRuntime()
    runtime.scheduler.after(1, () => {
      throw new Error('from a timer')
    })
    await expect(runtime.advance(5)).rejects.toThrow('from a timer')
    runtime.scheduler.defer(() => {
      throw new Error('from the end of the tick')
    })
    await expect(runtime.settle()).rejects.toThrow('from the end of the tick')
  })

  test('two callers cannot move time at once', async () => {
    const runtime = createFakeRuntime()
    const first = runtime.advance(10)
    await expect(runtime.advance(10)).rejects.toThrow('two callers')
    await first
    expect(runtime.clock.monotonicMs()).toBe(10)
  })
})

describe('waiting', () => {
  test('runUntil stops at the timer that makes the predicate hold', async () => {
    const runtime = createFakeRuntime()
    let count = 0
    const tick = (): void => {
      count += 1
      runtime.scheduler.after(1000, tick)
    }
    tick()
    await runtime.runUntil(() => count === 5)
    expect(runtime.clock.monotonicMs()).toBe(4000)
  })

  test('runUntil fails at its limit', async () => {
    const runtime = createFakeRuntime()
    const tick = (): void => void runtime.scheduler.after(1000, tick)
    tick()
    await expect(runtime.runUntil(() => false, { limitMs: 10_000 })).rejects.toThrow('within 10000 ms')
    expect(runtime.clock.monotonicMs()).toBe(10_000)
  })

  test('runUntil fails where nothing can come any more', async () => {
    const runtime = createFakeRuntime({ yieldToHost: () => Promise.resolve() })
    await expect(runtime.runUntil(() => false)).rejects.toThrow('no timer is pending')
  })

  test('complete moves time for a promise that needs it, and passes its rejection on', async () => {
    const runtime = createFakeRuntime()
    const slow = new Promise<string>((resolve) => void runtime.scheduler.after(40, () => resolve('slow')))
    await expect(runtime.complete(slow)).resolves.toBe('slow')
    const failing = new Promise<string>((_, reject) => void runtime.scheduler.after(2, () => reject(new Error('no'))))
    await expect(runtime.complete(failing)).rejects.toThrow('no')
    expect(runtime.clock.monotonicMs()).toBe(42)
  })
})

describe('ids, hashes and chance', () => {
  test('ids are UUIDs of version 7 that sort in the order of their making', async () => {
    const runtime = createFakeRuntime()
    const ids: string[] = []
    for (let index = 0; index < 300; index += 1) {
      ids.push(runtime.newId())
      if (index === 100) await runtime.advance(3)
      if (index === 200) runtime.stepWallClock(-60_000)
    }
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect([...ids].sort()).toEqual(ids)
    expect(new Set(ids).size).toBe(300)
  })

  test('a seed repeats ids and chance; the chance of the test does not move that of the runtime', () => {
    const one = createFakeRuntime({ seed: 3 })
    const two = createFakeRuntime({ seed: 3 })
    two.chance.next()
    expect([one.newId(), one.random()]).toEqual([two.newId(), two.random()])
    expect(createFakeRuntime({ seed: 4 }).newId()).not.toBe(createFakeRuntime({ seed: 3 }).newId())
  })

  test('sha256 and byteLength read UTF-8', () => {
    const runtime = createFakeRuntime()
    expect(runtime.sha256('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
    expect(runtime.byteLength('aé😀')).toBe(7)
  })
})

describe('faults', () => {
  test('an armed point acts the given number of times; every reach is recorded', () => {
    const { faults } = createFakeRuntime()
    faults.failAt('settle-committed', 2, () => {
      throw new Error('stopped')
    })
    faults.reach('fetch-committed')
    expect(() => faults.reach('settle-committed')).toThrow('stopped')
    expect(() => faults.reach('settle-committed')).toThrow('stopped')
    expect(() => faults.reach('settle-committed')).not.toThrow()
    expect(faults.reached).toEqual(['fetch-committed', 'settle-committed', 'settle-committed', 'settle-committed'])
    faults.clear()
    expect(faults.reached).toEqual([])
  })
})

describe('processes', () => {
  test('a process is alive until it is marked as gone, seen from everywhere', () => {
    const runtime = createFakeRuntime()
    const other = runtime.forProcess({ pid: 2000, startTime: '2' })
    expect(other.processes.self()).toEqual({ ...runtime.processes.self(), pid: 2000, startTime: '2' })
    expect(runtime.processes.isGone(other.processes.self())).toBe(false)
    runtime.processes.markGone(other.processes.self())
    expect(runtime.processes.isGone(other.processes.self())).toBe(true)
    expect(other.processes.isGone(runtime.processes.self())).toBe(false)
  })

  test('another process shares the clock, the ids and the timers', async () => {
    const runtime = createFakeRuntime()
    const other = runtime.forProcess({ pid: 2000 })
    const ran: number[] = []
    other.scheduler.after(5, () => ran.push(other.clock.monotonicMs()))
    await runtime.advance(7)
    expect(ran).toEqual([5])
    expect(other.newId() < runtime.newId()).toBe(true)
  })
})
