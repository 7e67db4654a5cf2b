// Holes in what a key protects: who holds it, what is told apart, what a duplicate becomes.
import { defineJob } from 'chokaq'
import { defineHandler, type Handler } from 'chokaq/worker'
import { z } from 'zod'
import { expect, test } from 'vitest'
import type { NewJob } from '../../src/core/job.ts'
import type { Lease } from '../../src/core/lease.ts'
import { capture, capturing } from '../engine/contracts.ts'
import { sqliteInMemory } from '../engine/sqlite-storage.ts'
import { ada, codeOf, gate, worlds, type World } from '../engine/world.ts'

const open = worlds(sqliteInMemory)

const importRow = defineJob({
  type: 'import.row.v1',
  payload: z.object({ row: z.string(), amount: z.number().default(1) }),
  result: z.object({ written: z.number() }),
  key: (p) => p.row,
  duplicateWindow: '1d',
  sameWhen: (p) => p.amount,
  allowRaw: true,
})

function importing(run: () => Promise<{ written: number }>, options: object = {}): Handler {
  return defineHandler(importRow, {
    sideEffects: 'read-before-write',
    whenInterrupted: 'resume',
    retry: { attempts: 1 },
    ...options,
    run,
  })
}

/** Without the contract: the worker computes the key. */
async function enqueueRaw(world: World, payload: object): Promise<string> {
  const row: NewJob = {
    id: world.runtime.newId(),
    type: 'import.row.v1',
    queue: 'default',
    payload: JSON.stringify(payload),
    priority: 0,
    due: { kind: 'now' },
    tenant: undefined,
    key: undefined,
    fingerprint: undefined,
    tags: [],
    traceContext: undefined,
    mayExist: false,
    parentId: undefined,
  }
  await world.driver.enqueue([row])
  return row.id
}

test('H1 a dead job that is brought back is no duplicate of itself: it runs and completes', async () => {
  const world = open()
  const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
  let isBroken = true
  const handlers = [
    capturing(
      async () => {
        if (isBroken) throw new Error('not yet')
        return { chargeId: 'ch_1' }
      },
      { retry: { attempts: 1 } },
    ),
  ]
  await world.drain(handlers)
  expect(await world.state(id)).toBe('dead')
  isBroken = false
  expect(await world.chokaq.dlq.resurrect(id, { mode: 'continue' }, ada)).toMatchObject({ kind: 'resurrected' })
  await world.drain(handlers)
  expect(await world.job(id)).toMatchObject({ state: 'completed', attempt: 2, result: '{"chargeId":"ch_1"}' })
})

const budgets = { whenInterrupted: 'resume', crashBudget: 2, fetchCrashBudget: 10, retryLifetimeMs: 1_000 } as const
const times = { timeoutMs: 1_000, markerLifeMs: 1_000 } as const
const policy = { ...budgets, ...times, type: 'import.row.v1', keyed: true, fastStart: true } as const

async function fetchedBy(world: World, workerId: string): Promise<Lease> {
  const [job] = await world.driver.fetch({ workerId, queue: 'default', limit: 1, policies: [policy] })
  expect(job?.state).toBe('fetched')
  return job?.lease ?? { jobId: '', token: 0 }
}

test('R3 a keyed job that nobody has claimed does not start', async () => {
  const world = open()
  await enqueueRaw(world, { row: 'r1' })
  const lease = await fetchedBy(world, 'one')
  expect(await world.driver.start([{ lease, policy }])).toEqual([{ kind: 'lost' }])
})

test('H8 a stale owner cannot claim for the one who has the job now', async () => {
  const world = open()
  const id = await enqueueRaw(world, { row: 'r1' })
  const stale = await fetchedBy(world, 'one')
  await world.driver.rescue({ deadWorkerIds: ['one'], limit: 1 })
  await fetchedBy(world, 'two')
  const key = { hash: 'f'.repeat(64), prefix: 'r1', scope: 'import.row' }
  expect(await world.driver.claim([{ lease: stale, key, fingerprint: 'x' }])).toEqual([{ kind: 'lost' }])
  expect((await world.job(id)).keyHash).toBeNull()
})

test('H7 a handler that runs for hours keeps its key: a second job with it is not stored', async () => {
  const world = open()
  const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
  const done = gate<object>()
  const worker = await world.start([capturing(() => done.promise, { timeout: '20h' })], { archiveRetention: '30d' })
  await world.runtime.runUntil(async () => (await world.state(id)) === 'processing')
  await world.runtime.advance(10 * 3_600_000)
  expect(await world.chokaq.enqueue(capture, { paymentId: 'p1' })).toEqual({ outcome: 'already-active', id })
  done.open({ chargeId: 'ch_1' })
  await world.stop(worker)
  expect(await world.state(id)).toBe('completed')
})

test('H10 a skipped duplicate is told from a success, in its record, the events and the counters', async () => {
  const world = open()
  const first = await enqueueRaw(world, { row: 'r1' })
  const second = await enqueueRaw(world, { row: 'r1' })
  await world.drain([importing(async () => ({ written: 1 }))])
  expect(await world.job(second)).toMatchObject({ state: 'skipped', duplicateOf: first })
  expect(world.of('job.completed')).toHaveLength(1)
  expect([await world.counter('jobs.completed'), await world.counter('jobs.skipped')]).toEqual([1, 1])
})

test('H11 a deferred duplicate does the work when its holder has failed for good', async () => {
  const world = open()
  const first = await enqueueRaw(world, { row: 'r1' })
  const second = await enqueueRaw(world, { row: 'r1' })
  const begun = gate()
  const result = gate()
  let runs = 0
  const run = async (): Promise<{ written: number }> => {
    runs += 1
    if (runs > 1) return { written: 1 }
    begun.open()
    await result.promise
    return { written: 1 }
  }
  const worker = await world.start([importing(run, { onDuplicate: 'defer' })])
  await world.runtime.complete(begun.promise)
  await world.runtime.runUntil(() => world.of('job.deferred').length > 0)
  result.fail(new Error('gone for good'))
  await world.runtime.runUntil(async () => (await world.state(second)) === 'completed')
  await world.stop(worker)
  expect([await world.state(first), runs]).toEqual(['dead', 2])
})

test('H14 middleware stands inside the claim: a duplicate never reaches it', async () => {
  const world = open()
  await enqueueRaw(world, { row: 'r1' })
  await enqueueRaw(world, { row: 'r1' })
  const seen: string[] = []
  await world.drain([importing(async () => ({ written: 1 }))], {
    middleware: [
      async (ctx, next) => {
        seen.push(ctx.jobId)
        return next()
      },
    ],
  })
  expect(seen).toHaveLength(1)
})

test('H16 the same key of two types is two keys', async () => {
  const world = open()
  const other = defineJob({
    type: 'payment.refund.v1',
    payload: z.object({ paymentId: z.string() }),
    key: (p) => p.paymentId,
    duplicateWindow: '7d',
  })
  await world.chokaq.enqueue(capture, { paymentId: 'order-42' })
  expect((await world.chokaq.enqueue(other, { paymentId: 'order-42' })).outcome).toBe('enqueued')
})

test('H17 producer and worker compute one key, also where its letters are written in two ways', async () => {
  const world = open()
  const { id } = await world.chokaq.enqueue(importRow, { row: 'caf\u00e9' })
  const raw = await enqueueRaw(world, { row: 'cafe\u0301' })
  let runs = 0
  await world.drain([
    importing(async () => {
      runs += 1
      return { written: 1 }
    }),
  ])
  expect(runs).toBe(1)
  expect(await world.job(raw)).toMatchObject({ state: 'skipped', duplicateOf: id })
})

test('H18 an empty key fails closed: refused at enqueue, and buried by the worker without a run', async () => {
  const world = open()
  expect(await codeOf(world.chokaq.enqueue(importRow, { row: ' ' }))).toBe('CHOKAQ_EMPTY_KEY')
  const raw = await enqueueRaw(world, { row: 'undefined' })
  let runs = 0
  await world.drain([
    importing(async () => {
      runs += 1
      return { written: 1 }
    }),
  ])
  expect(await world.job(raw)).toMatchObject({ state: 'dead', reason: 'EmptyKey' })
  expect([runs, await world.counter('idempotency.claims', 'empty_key')]).toEqual([0, 2])
})

test('H19 the same key with other content is refused: at enqueue, and on the worker', async () => {
  const world = open()
  await world.chokaq.enqueue(importRow, { row: 'r1', amount: 5 })
  expect(await codeOf(world.chokaq.enqueue(importRow, { row: 'r1', amount: 500 }))).toBe('CHOKAQ_KEY_REUSED')
  const raw = await enqueueRaw(world, { row: 'r1', amount: 500 })
  await world.drain([importing(async () => ({ written: 1 }))])
  const late = await enqueueRaw(world, { row: 'r1', amount: 700 })
  await world.drain([importing(async () => ({ written: 1 }))])
  for (const id of [raw, late]) expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'KeyReused' })
})

test('H20 a duplicate of a finished job is given its result', async () => {
  const world = open()
  const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
  await world.drain([capturing()])
  const result = { chargeId: 'ch_p1' }
  expect(await world.chokaq.enqueue(capture, { paymentId: 'p1' })).toEqual({ outcome: 'already-completed', id, result })
})

test('H24 a job that was brought back keeps its key: its duplicate stays out', async () => {
  const world = open()
  const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
  const fails = async (): Promise<never> => {
    throw new Error('not yet')
  }
  await world.drain([capturing(fails, { retry: { attempts: 1 } })])
  await world.chokaq.dlq.resurrect(id, { mode: 'continue' }, ada)
  expect(await world.chokaq.enqueue(capture, { paymentId: 'p1' })).toEqual({ outcome: 'already-active', id })
})

test('H25 an edited payload is a decision: continue under the same key, or a new operation that is not skipped', async () => {
  const world = open()
  const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1', amount: 1 })
  const fails = async (): Promise<never> => {
    throw new Error('wrong amount')
  }
  await world.drain([capturing(fails, { retry: { attempts: 1 } })])
  const other = { payload: { paymentId: 'p2', amount: 2 }, job: capture } as const
  expect(await world.chokaq.dlq.resurrect(id, { mode: 'continue', ...other }, ada)).toEqual({ kind: 'key-changed' })
  const edited = { payload: { paymentId: 'p1', amount: 2 }, job: capture } as const
  await world.chokaq.dlq.resurrect(id, { mode: 'new-operation', ...edited }, ada)
  const paid: number[] = []
  await world.drain([
    capturing(async ({ amount }) => {
      paid.push(amount)
      return { chargeId: 'ch_2' }
    }),
  ])
  expect(paid).toEqual([2])
  expect(await world.job(id)).toMatchObject({ state: 'completed', generation: 2 })
})

test('H28 every outcome of a claim is counted, by type and by name', async () => {
  const world = open()
  await enqueueRaw(world, { row: 'r1' })
  await enqueueRaw(world, { row: 'r1' })
  await enqueueRaw(world, { row: '' })
  await world.drain([importing(async () => ({ written: 1 }))])
  await enqueueRaw(world, { row: 'r1' })
  await enqueueRaw(world, { row: 'r2' })
  await world.drain([importing(() => Promise.reject(new Error('no')))])
  const rows = (await world.chokaq.insight.stats()).filter(({ name }) => name === 'idempotency.claims')
  expect(new Set(rows.map(({ type }) => type))).toEqual(new Set(['import.row.v1']))
  const counts = Object.fromEntries(rows.map(({ label, value }) => [label, value]))
  expect(counts).toEqual({
    claimed: 2,
    completed: 1,
    completed_duplicate: 1,
    in_progress_duplicate: 1,
    released: 1,
    empty_key: 1,
  })
})
