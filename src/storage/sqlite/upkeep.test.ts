import { describe, expect, it } from 'vitest'
import { openStorage, scratchPath } from '../../../test/storage/scratch-sqlite.ts'
import { newJob } from '../../testing/conformance/new-job.ts'
import { createFakeRuntime } from '../../testing/fake-runtime.ts'

describe('the upkeep of a file', () => {
  it('tells its size, what of it is free, and how far its log has grown', async () => {
    const runtime = createFakeRuntime()
    const storage = openStorage(scratchPath(), runtime)
    const jobs = Array.from({ length: 200 }, () => newJob(runtime, { payload: JSON.stringify('x'.repeat(5_000)) }))
    await storage.enqueue(jobs)
    const full = (await storage.inspector.upkeep()).file
    expect(full?.sizeBytes).toBeGreaterThan(1_000_000)
    expect(full?.logBytes).toBeGreaterThan(1_000_000)
    for (const { id } of jobs) await storage.inspector.cancel(id, { actor: 'test', note: '' })
    await runtime.advance(1_000)
    await storage.prune({ limit: 1_000, archiveRetentionMs: 0, dlqRetentionMs: 0 })
    const { file, tables, oldestSnapshotMs } = await storage.inspector.upkeep()
    expect(file?.freeBytes).toBeGreaterThan(1_000_000)
    expect([tables, oldestSnapshotMs]).toEqual([[], undefined])
  })

  it('is nothing where there is no file', async () => {
    const storage = openStorage(':memory:', createFakeRuntime())
    expect((await storage.inspector.upkeep()).file).toBeUndefined()
  })
})
