import { describe, expect, test } from 'vitest'
import { workerDefaults, type WorkerConfig } from '../../core/config.ts'
import { ChokaQError } from '../../core/errors.ts'
import { EventBus, type ChokaQEvent } from '../../core/events.ts'
import type { BeatVerdict, StorageDriver } from '../../core/storage.ts'
import { createFakeRuntime } from '../../testing/fake-runtime.ts'
import { Heart } from './heart.ts'

const config: WorkerConfig = { ...workerDefaults, prefetch: 20, waive: {} }
const alive: BeatVerdict = { kind: 'alive', cancelRequested: [], ownsJobs: true, atMs: 70_000 }
const failed = new ChokaQError('CHOKAQ_STORAGE_FAILED', { problem: 'cut' })

function beating(answer: () => Promise<BeatVerdict> = () => Promise.resolve(alive)) {
  const runtime = createFakeRuntime()
  const events = new EventBus()
  const heard: ChokaQEvent[] = []
  events.subscribe((event) => void heard.push(event))
  const beats: number[] = []
  const fences: { why: string; atMs: number }[] = []
  const cancels: (readonly string[])[] = []
  const disowns: unknown[] = []
  const driver = {
    heartbeat() {
      beats.push(runtime.clock.monotonicMs())
      return answer()
    },
    disown(request: unknown) {
      disowns.push(request)
      return Promise.resolve(0)
    },
  } as Partial<StorageDriver> as StorageDriver
  const heart = new Heart({
    driver,
    runtime,
    events,
    config,
    workerId: 'w',
    load: () => ({ concurrency: 1, runningCount: 0, bufferedCount: 0 }),
    inHand: () => [{ jobId: 'j', token: 7 }],
    onCancel: (ids) => void cancels.push(ids),
    onFence: (why) => void fences.push({ why, atMs: runtime.clock.monotonicMs() }),
  })
  heart.start()
  return { runtime, heart, heard, beats, fences, cancels, disowns }
}

describe('Heart', () => {
  test('beats every 5 s, tells of cancels, and disowns what is not in hand', async () => {
    const verdict: BeatVerdict = { kind: 'alive', cancelRequested: ['j'], ownsJobs: true, atMs: 70_000 }
    const { runtime, heart, beats, cancels, disowns, fences } = beating(() => Promise.resolve(verdict))
    await runtime.advance(15_000)
    expect(beats).toEqual([5_000, 10_000, 15_000])
    expect(cancels).toEqual([['j'], ['j'], ['j']])
    expect(disowns[0]).toEqual({ workerId: 'w', inHand: [{ jobId: 'j', token: 7 }], fetchedBeforeMs: 60_000 })
    expect([fences, heart.confirmed]).toEqual([[], true])
    heart.stop()
    expect(runtime.pendingTimerCount()).toBe(0)
  })

  test('fences 20 s after the last confirmed beat was sent, once, and before anybody calls it dead', async () => {
    const { runtime, heart, heard, fences } = beating(() => Promise.reject(failed))
    await runtime.advance(60_000)
    expect(fences).toEqual([{ why: 'beats-failed', atMs: 20_000 }])
    expect(fences[0]?.atMs).toBeLessThan(config.deadAfterMs)
    expect(heart.confirmed).toBe(false)
    const failures = heard.filter(({ name }) => name === 'worker.beat_failed')
    expect(failures).toHaveLength(4)
    expect(failures[0]).toMatchObject({ workerId: 'w', sinceBeatMs: 5_000 })
    expect(runtime.pendingTimerCount()).toBe(0)
  })

  test('fences while a beat hangs', async () => {
    const { runtime, fences, beats } = beating(() => new Promise(() => undefined))
    await runtime.advance(25_000)
    expect(fences).toEqual([{ why: 'beats-failed', atMs: 20_000 }])
    expect(beats.length).toBeGreaterThan(1)
  })

  test('one late beat saves it', async () => {
    let isDown = true
    const { runtime, heart, fences } = beating(() => (isDown ? Promise.reject(failed) : Promise.resolve(alive)))
    await runtime.advance(14_000)
    isDown = false
    await runtime.advance(60_000)
    expect(fences).toEqual([])
    heart.stop()
  })

  test('counts from when a beat was sent, not from when it was answered', async () => {
    let calls = 0
    const { runtime, fences } = beating(async () => {
      calls += 1
      if (calls > 1) throw failed
      await new Promise<void>((resolve) => runtime.scheduler.after(4_000, resolve))
      return alive
    })
    // Sent at 5 s and answered at 9 s: it holds until 25 s.
    await runtime.advance(40_000)
    expect(fences).toEqual([{ why: 'beats-failed', atMs: 25_000 }])
  })

  test('an unknown worker is fenced at once', async () => {
    const { runtime, fences } = beating(() => Promise.resolve({ kind: 'unknown' }))
    await runtime.advance(30_000)
    expect(fences).toEqual([{ why: 'declared-dead', atMs: 5_000 }])
  })

  test('counts from the registration, not from its making', async () => {
    const { runtime, heart, fences } = beating(() => Promise.reject(failed))
    await runtime.advance(10_000)
    heart.registered(9_000)
    await runtime.advance(40_000)
    expect(fences).toEqual([{ why: 'beats-failed', atMs: 29_000 }])
  })

  test('tells of a stall of the event loop with its length', async () => {
    const { runtime, heart, heard } = beating()
    await runtime.advance(1_000)
    // The watch timer fires late: as if a handler had computed for 12 s.
    const clock = runtime.clock as { monotonicMs: () => number }
    const real = clock.monotonicMs
    clock.monotonicMs = () => real() + 12_000
    await runtime.advance(1_000)
    expect(heard).toContainEqual({ name: 'worker.stalled', workerId: 'w', stalledMs: 12_000 })
    heart.stop()
  })

  test('a beat that is answered after the stop changes nothing; quiet() waits for it', async () => {
    let answer: (verdict: BeatVerdict) => void = () => undefined
    const { runtime, heart, fences, disowns } = beating(() => new Promise((resolve) => (answer = resolve)))
    await runtime.advance(5_000)
    heart.stop()
    let isQuiet = false
    void heart.quiet().then(() => (isQuiet = true))
    await runtime.settle()
    expect(isQuiet).toBe(false)
    answer({ kind: 'unknown' })
    await runtime.settle()
    expect([isQuiet, fences, disowns]).toEqual([true, [], []])
    expect(runtime.pendingTimerCount()).toBe(0)
  })
})
