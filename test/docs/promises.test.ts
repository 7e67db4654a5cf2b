// Promises of docs/guarantees.md that need a client, a worker and time, each in its plainest form.
import { createChokaQ, defineJob, hasCode, type ChokaQEvent, type Storage } from 'chokaq'
import { sqlite } from 'chokaq/sqlite'
import { createFakeRuntime, type FakeRuntime } from 'chokaq/testing'
import { createWorker, defineHandler } from 'chokaq/worker'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { StorageDriver, TypePolicy } from '../../src/core/storage.ts'

const greet = defineJob({ type: 'greet.v1', payload: z.object({ name: z.string() }) })
const day = 86_400_000
const policy: TypePolicy = {
  type: greet.type,
  keyed: false,
  fastStart: true,
  whenInterrupted: 'resume',
  crashBudget: 2,
  fetchCrashBudget: 10,
  retryLifetimeMs: day,
  timeoutMs: 60_000,
  markerLifeMs: day,
}

/** One database in memory for all clients of a test; `change` replaces methods of the driver. */
function storageWith(change: (driver: StorageDriver) => Partial<StorageDriver>): Storage & { driver?: StorageDriver } {
  const inner = sqlite(':memory:')
  const storage: Storage & { driver?: StorageDriver } = {
    ...inner,
    open(runtime) {
      const driver = inner.open(runtime)
      const changed = change(driver)
      storage.driver = new Proxy(driver, {
        get(target, name) {
          const own = (changed as Readonly<Record<string | symbol, unknown>>)[name]
          const value = own ?? (Reflect.get(target, name, target) as unknown)
          return typeof value === 'function' ? (value.bind(target) as unknown) : value
        },
      })
      return storage.driver
    },
  }
  return storage
}

describe('promises', () => {
  let runtime: FakeRuntime
  let events: ChokaQEvent[]
  beforeEach(() => {
    runtime = createFakeRuntime()
    events = []
  })
  afterEach(async () => {
    await runtime.settle()
  })

  function open(storage: Storage) {
    return createChokaQ({ storage, runtime, onEvent: (event) => events.push(event) })
  }

  it('an enqueue without an answer ends in CHOKAQ_ENQUEUE_UNKNOWN with the id, and repeating it is safe', async () => {
    let isAnswering = false
    const storage = storageWith((driver) => ({
      async enqueue(jobs) {
        const verdicts = await driver.enqueue(jobs)
        return isAnswering ? verdicts : new Promise(() => undefined)
      },
    }))
    const chokaq = open(storage)
    const startedMs = runtime.clock.monotonicMs()
    const error: unknown = await runtime.complete(
      chokaq.enqueue(greet, { name: 'Ann' }).catch((thrown: unknown) => thrown),
    )
    expect(runtime.clock.monotonicMs() - startedMs).toBe(30_000)
    expect(hasCode(error, 'CHOKAQ_ENQUEUE_UNKNOWN')).toBe(true)
    isAnswering = true
    const { id } = hasCode(error, 'CHOKAQ_ENQUEUE_UNKNOWN') ? error.details : { id: '' }
    const again = await runtime.complete(chokaq.enqueue(greet, { name: 'Ann' }, { id }))
    expect(again).toEqual({ outcome: 'enqueued', id })
    expect((await chokaq.jobs.list('hot')).jobs).toHaveLength(1)
    await chokaq.close()
  })

  async function lostJob(isGone: boolean) {
    const storage = storageWith(() => ({}))
    const chokaq = open(storage)
    const { id } = await runtime.complete(chokaq.enqueue(greet, { name: 'Ann' }))
    const identity = { ...runtime.processes.self(), pid: 4711 }
    const info = { id: 'lost', name: 'lost', identity, queues: ['default'], types: [greet.type], concurrency: 1 }
    await storage.driver?.registerWorker(info)
    await storage.driver?.fetch({ workerId: 'lost', queue: 'default', limit: 1, policies: [policy] })
    if (isGone) runtime.processes.markGone(identity)
    const handler = defineHandler(greet, { sideEffects: 'none', run: async () => undefined })
    const worker = createWorker({ chokaq, handlers: [handler] })
    const startedMs = runtime.clock.monotonicMs()
    await runtime.complete(worker.start())
    await runtime.runUntil(() => events.some((event) => event.name === 'job.completed'))
    const tookMs = runtime.clock.monotonicMs() - startedMs
    await runtime.complete(worker.stop())
    const job = await chokaq.jobs.get(id)
    await chokaq.close()
    return { tookMs, job }
  }

  it('the job of a worker whose process is gone is taken back with the next sweep', async () => {
    const { tookMs, job } = await lostJob(true)
    expect(tookMs).toBeLessThan(7_000)
    expect(job).toMatchObject({ state: 'completed', attempt: 2 })
    expect(job?.history).toContain('CHOKAQ_INTERRUPTED')
  })

  it('the job of a worker that falls silent is taken back after deadAfter and a sweep, and not before', async () => {
    const { tookMs } = await lostJob(false)
    expect(tookMs).toBeGreaterThanOrEqual(30_000)
    expect(tookMs).toBeLessThan(45_000)
  })

  it('a worker that cannot confirm its beat aborts what it runs, before others take its jobs', async () => {
    const storage = storageWith(() => ({ heartbeat: () => new Promise(() => undefined) }))
    const chokaq = open(storage)
    await runtime.complete(chokaq.enqueue(greet, { name: 'Ann' }))
    let reason: unknown
    const handler = defineHandler(greet, {
      sideEffects: 'none',
      async run(_p, ctx) {
        await new Promise<void>((resolve) => {
          ctx.signal.addEventListener('abort', () => resolve())
        })
        reason = ctx.signal.reason
        ctx.signal.throwIfAborted()
      },
    })
    const worker = createWorker({ chokaq, handlers: [handler] })
    const startedMs = runtime.clock.monotonicMs()
    await runtime.complete(worker.start())
    await runtime.runUntil(() => reason !== undefined)
    expect(runtime.clock.monotonicMs() - startedMs).toBeLessThanOrEqual(21_000)
    expect(hasCode(reason, 'CHOKAQ_LEASE_LOST')).toBe(true)
    await runtime.complete(worker.stop({ force: true }))
    await chokaq.close()
  })
})
