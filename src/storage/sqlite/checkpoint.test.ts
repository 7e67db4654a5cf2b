import { statSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { openStorage, scratchPath, userHandle } from '../../../test/storage/scratch-sqlite.ts'
import { newJob } from '../../testing/conformance/new-job.ts'
import { createFakeRuntime } from '../../testing/fake-runtime.ts'

describe('the idle checkpoint', () => {
  it('empties the log after five quiet seconds, and not before', async () => {
    const runtime = createFakeRuntime()
    const path = scratchPath()
    const storage = openStorage(path, runtime)
    const logBytes = (): number => statSync(`${path}-wal`).size
    await storage.enqueue([newJob(runtime)])
    await runtime.advance(3_000)
    await storage.enqueue([newJob(runtime)])
    await runtime.advance(3_000)
    expect(logBytes()).toBeGreaterThan(0)
    await runtime.advance(2_000)
    expect(logBytes()).toBe(0)
    expect(runtime.pendingTimerCount()).toBe(0)
  })

  it('is not put off by beats', async () => {
    const runtime = createFakeRuntime()
    const path = scratchPath()
    const storage = openStorage(path, runtime)
    await storage.enqueue([newJob(runtime)])
    for (let beat = 0; beat < 6; beat += 1) {
      await storage.heartbeat({ workerId: runtime.newId(), concurrency: 1, runningCount: 0, bufferedCount: 0 })
      await runtime.advance(1_000)
    }
    expect(statSync(`${path}-wal`).size).toBe(0)
  })

  it('comes back where a reader pins the log', async () => {
    const runtime = createFakeRuntime()
    const path = scratchPath()
    const storage = openStorage(path, runtime)
    await storage.enqueue([newJob(runtime)])
    const reader = userHandle(path)
    reader.exec('BEGIN')
    reader.prepare('SELECT count(*) FROM chokaq_jobs_hot').get()
    await storage.enqueue([newJob(runtime)])
    await runtime.advance(6_000)
    expect(statSync(`${path}-wal`).size).toBeGreaterThan(0)
    reader.exec('COMMIT')
    await runtime.advance(5_000)
    expect(statSync(`${path}-wal`).size).toBe(0)
  })
})
