import { describe, expect, it } from 'vitest'
import { openStorage, scratchPath } from '../../../test/storage/scratch-sqlite.ts'
import { newJob } from '../../testing/conformance/new-job.ts'
import { createFakeRuntime } from '../../testing/fake-runtime.ts'

describe('wake', () => {
  it("tells of the storage's own commits at the end of the tick, once for many", async () => {
    const runtime = createFakeRuntime()
    const storage = openStorage(scratchPath(), runtime)
    let wakes = 0
    storage.onWake(() => (wakes += 1))
    await Promise.all([1, 2, 3].map(() => storage.enqueue([newJob(runtime)])))
    await runtime.settle()
    expect(wakes).toBe(1)
    await runtime.advance(1_000)
    expect(wakes).toBe(1)
  })

  it('does not tell of a job that is due later', async () => {
    const runtime = createFakeRuntime()
    const storage = openStorage(scratchPath(), runtime)
    let wakes = 0
    storage.onWake(() => (wakes += 1))
    await storage.enqueue([newJob(runtime, { due: { kind: 'in', delayMs: 60_000 } })])
    await runtime.advance(100)
    expect(wakes).toBe(0)
  })

  it("sees another connection's commit within 25 ms", async () => {
    const runtime = createFakeRuntime()
    const path = scratchPath()
    const storage = openStorage(path, runtime)
    const other = openStorage(path, runtime.forProcess({ pid: 2_000 }))
    await storage.ready()
    await other.ready()
    let wakes = 0
    storage.onWake(() => (wakes += 1))
    await other.enqueue([newJob(runtime)])
    expect(wakes).toBe(0)
    await runtime.advance(25)
    expect(wakes).toBe(1)
    await runtime.advance(1_000)
    expect(wakes).toBe(1)
  })

  it('has a timer only while someone listens', async () => {
    const runtime = createFakeRuntime()
    const storage = openStorage(scratchPath(), runtime)
    await storage.ready()
    const before = runtime.pendingTimerCount()
    const stops = [storage.onWake(() => undefined), storage.onWake(() => undefined)]
    expect(runtime.pendingTimerCount()).toBe(before + 1)
    for (const stop of stops) stop()
    expect(runtime.pendingTimerCount()).toBe(before)
  })
})
