import { describe, expect, test } from 'vitest'
import { ChokaQError } from '../core/errors.ts'
import { EventBus, type ChokaQEvent } from '../core/events.ts'
import { createFakeRuntime } from '../testing/fake-runtime.ts'
import { pause, withDeadline } from './deadline.ts'
import { persist } from './persist.ts'

const failed = new ChokaQError('CHOKAQ_STORAGE_FAILED', { problem: 'cut' })

describe('withDeadline', () => {
  test('gives the answer, or the error, and leaves no timer', async () => {
    const runtime = createFakeRuntime()
    expect(await withDeadline(runtime.scheduler, 100, 'call', Promise.resolve(1))).toBe(1)
    await expect(withDeadline(runtime.scheduler, 100, 'call', Promise.reject(failed))).rejects.toBe(failed)
    expect(runtime.pendingTimerCount()).toBe(0)
  })

  test('gives up after the deadline with a transient error that names the call', async () => {
    const runtime = createFakeRuntime()
    const waiting = withDeadline(runtime.scheduler, 100, 'heartbeat', new Promise(() => undefined))
    const refused = expect(waiting).rejects.toThrow(/heartbeat gave no answer for 100 ms/)
    await runtime.advance(100)
    await refused
  })

  test('an error that comes after the deadline ends no process', async () => {
    const runtime = createFakeRuntime()
    let fail: (error: Error) => void = () => undefined
    const late = new Promise((_resolve, reject) => (fail = reject))
    const waiting = withDeadline(runtime.scheduler, 100, 'call', late).catch(() => 'gave up')
    await runtime.advance(100)
    expect(await waiting).toBe('gave up')
    fail(new Error('late'))
    await runtime.settle()
  })
})

test('pause takes the time of the scheduler', async () => {
  const runtime = createFakeRuntime()
  let over = false
  void pause(runtime.scheduler, 50).then(() => (over = true))
  await runtime.advance(49)
  expect(over).toBe(false)
  await runtime.advance(1)
  expect(over).toBe(true)
})

describe('persist', () => {
  function world(stop: () => boolean = () => false) {
    const runtime = createFakeRuntime()
    const events = new EventBus()
    const heard: ChokaQEvent[] = []
    events.subscribe((event) => void heard.push(event))
    return { runtime, heard, options: { scheduler: runtime.scheduler, events, during: 'settle', stop } }
  }

  test('repeats after a transient failure, waiting longer each time, at most a second', async () => {
    const { runtime, heard, options } = world()
    const times: number[] = []
    const call = persist(options, () => {
      times.push(runtime.clock.monotonicMs())
      return times.length < 9 ? Promise.reject(failed) : Promise.resolve('done')
    })
    expect(await runtime.complete(call)).toBe('done')
    expect(times).toEqual([0, 20, 60, 140, 300, 620, 1_260, 2_260, 3_260])
    expect(heard).toHaveLength(8)
    expect(heard[0]).toMatchObject({
      name: 'storage.failed',
      during: 'settle',
      failure: { code: 'CHOKAQ_STORAGE_FAILED' },
    })
  })

  test('throws at once what no repeat can heal', async () => {
    const { runtime, options } = world()
    let calls = 0
    const call = persist(options, () => {
      calls += 1
      return Promise.reject(new RangeError('a bug'))
    })
    await expect(runtime.complete(call)).rejects.toThrow('a bug')
    expect(calls).toBe(1)
  })

  test('stops where repeating has no point any more, before and after a wait', async () => {
    let stopped = true
    const { runtime, options } = world(() => stopped)
    let calls = 0
    const run = (): Promise<never> => {
      calls += 1
      return Promise.reject(failed)
    }
    await expect(runtime.complete(persist(options, run))).rejects.toBe(failed)
    expect(calls).toBe(1)
    stopped = false
    const waiting = expect(runtime.complete(persist(options, run))).rejects.toBe(failed)
    stopped = true
    await waiting
    expect(calls).toBe(2)
  })
})
