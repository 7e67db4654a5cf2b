// The thread that reads for people: it sees what is committed, stops nobody, and comes back when it dies.
import { describe, expect, it, onTestFinished } from 'vitest'
import type { InspectorReader } from '../../src/core/inspector.ts'
import type { StorageDriver } from '../../src/core/storage.ts'
import { createNodeRuntime } from '../../src/engine/node-runtime.ts'
import { newJob } from '../../src/testing/conformance/new-job.ts'
import { createFakeRuntime } from '../../src/testing/fake-runtime.ts'
import { codeOf } from '../engine/world.ts'
import { openStorage, scratchPath, spyDriver, userHandle } from './scratch-sqlite.ts'

const runtime = createFakeRuntime()

function readerOf(driver: StorageDriver): InspectorReader {
  const reader = driver.openReader?.({ deadlineMs: 5_000 })
  if (reader === undefined) throw new TypeError('this storage lends no reader')
  onTestFinished(() => reader.close())
  return reader
}

/** Rows enough that reading them takes a while: made by the database itself. */
function fill(path: string, count: number): void {
  const db = userHandle(path)
  db.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
    INSERT INTO chokaq_jobs_archive (id, type, queue, priority, run_at, token, generation, attempt, failure_count,
      crash_count, fetch_crash_count, revision, created_at, key_computed, tags, payload, outcome, finished_at)
    SELECT printf('00000000-0000-7000-8000-%012x', i), 'mail.v1', 'default', 0, i, i, 1, 1, 0, 0, 0, 1, i, 0,
      '["a","b"]', '{"to":"somebody"}', 'completed', i FROM n`)
}

describe('a reader of a SQLite file', () => {
  it('sees what is committed, and its rows are those of the storage itself', async () => {
    const driver = openStorage(scratchPath(), createNodeRuntime())
    const { reads } = readerOf(driver)
    expect((await reads.list({ pillar: 'hot', filter: {}, limit: 10, cursor: undefined })).jobs).toEqual([])
    const job = newJob(runtime, { tags: ['a'] })
    await driver.enqueue([job])
    const found = await reads.get(job.id)
    expect(found).toEqual(await driver.inspector.get(job.id))
    expect(found?.id).toBe(job.id)
    expect(await reads.queues()).toMatchObject([{ name: 'default', pendingCount: 1 }])
    expect(await reads.count({ pillar: 'hot', filter: {}, limit: 5 })).toEqual({ count: 1, isExact: true })
  })

  it('refuses a forged cursor with the same code', async () => {
    const { reads } = readerOf(openStorage(scratchPath(), createNodeRuntime()))
    const call = reads.list({ pillar: 'hot', filter: {}, limit: 1, cursor: 'forged' })
    expect(await codeOf(call)).toBe('CHOKAQ_CURSOR_INVALID')
  })

  it('does not hold up the event loop while it counts a long list', async () => {
    const path = scratchPath()
    const driver = openStorage(path, createNodeRuntime())
    const { reads } = readerOf(driver)
    await reads.stats()
    fill(path, 60_000)
    const inThread = await turnsDuring(() => slowRead(reads))
    const inLoop = await turnsDuring(() => slowRead(driver.inspector))
    // The same reads: those of the loop keep it from turning, however fast or busy the machine is.
    expect(inThread).toBeGreaterThan(10 * Math.max(1, inLoop))
  })

  it('is refused after it was closed, and after its storage was', async () => {
    const driver = openStorage(scratchPath(), createNodeRuntime())
    const first = readerOf(driver)
    await first.reads.stats()
    await first.close()
    expect(await codeOf(first.reads.stats())).toBe('CHOKAQ_STORAGE_CLOSED')
    const second = readerOf(driver)
    const pending = second.reads.stats()
    await driver.close()
    expect(['accepted', 'CHOKAQ_STORAGE_CLOSED']).toContain(await codeOf(pending))
    expect(await codeOf(second.reads.stats())).toBe('CHOKAQ_STORAGE_CLOSED')
  })
})

function slowRead(reads: InspectorReader['reads']): Promise<unknown> {
  // Every row is looked at and none has the tag.
  return reads.count({ pillar: 'archive', filter: { tag: 'nobody' }, limit: 100 })
}

/** How often the event loop turns while `work` runs four times. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0
  let isOver = false
  const turn = (): void => {
    turns += 1
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  for (let n = 0; n < 4; n += 1) await work()
  isOver = true
  return turns
}

describe('without a thread', () => {
  it('a database in memory is read by the storage itself', () => {
    const driver = openStorage(':memory:', createNodeRuntime())
    expect(readerOf(driver).reads).toBe(driver.inspector)
  })

  it('a file of another driver is, too: nobody can hand a driver to a thread', () => {
    const driver = openStorage(scratchPath(), createNodeRuntime(), { driver: spyDriver() })
    expect(readerOf(driver).reads).toBe(driver.inspector)
  })
})
