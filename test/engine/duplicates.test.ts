// One key, many jobs: what the holder of a key answers, what a duplicate on a worker becomes, and the claims counted.
import { defineJob } from 'chokaq'
import { defineHandler, ReviewNeeded, type Ctx, type Handler } from 'chokaq/worker'
import Database from 'better-sqlite3'
import { z } from 'zod'
import { describe, expect, test } from 'vitest'
import { newJob } from '../../src/testing/conformance/new-job.ts'
import { capture, capturing, raw, resize, resizing } from './contracts.ts'
import { sqliteOnFile } from './sqlite-storage.ts'
import { storages } from './storages.ts'
import { ada, codeOf, gate, worlds, type World } from './world.ts'

/** Brings the key 'p1' into a state; gives the id of the job that holds or held it. */
type Prepare = (world: World) => Promise<string>

const enqueueFirst = async (world: World): Promise<string> =>
  (await world.chokaq.enqueue(capture, { paymentId: 'p1' })).id

const failing = capturing(
  async () => {
    throw new Error('no')
  },
  { retry: { attempts: 1 } },
)

const holders: readonly { state: string; prepare: Prepare; answer: string }[] = [
  { state: 'waiting', prepare: enqueueFirst, answer: 'already-active' },
  {
    state: 'delayed',
    prepare: async (world) => (await world.chokaq.enqueue(capture, { paymentId: 'p1' }, { delay: '1h' })).id,
    answer: 'already-active',
  },
  {
    state: 'running',
    async prepare(world) {
      const id = await enqueueFirst(world)
      await world.start([capturing(() => gate<never>().promise)], { shutdownGrace: 0, abortGrace: '1s' })
      await world.runtime.settle()
      return id
    },
    answer: 'already-active',
  },
  {
    state: 'completed',
    async prepare(world) {
      const id = await enqueueFirst(world)
      await world.drain([capturing()])
      return id
    },
    answer: 'already-completed',
  },
  {
    state: 'in review',
    async prepare(world) {
      const id = await enqueueFirst(world)
      await world.drain([capturing(() => Promise.reject(new ReviewNeeded('look')))])
      return id
    },
    answer: 'already-in-review',
  },
  {
    state: 'dead without a marker',
    async prepare(world) {
      const id = await enqueueFirst(world)
      await world.drain([failing])
      return id
    },
    answer: 'enqueued',
  },
  {
    state: 'cancelled',
    async prepare(world) {
      const id = await enqueueFirst(world)
      await world.chokaq.jobs.cancel(id, ada)
      return id
    },
    answer: 'enqueued',
  },
  {
    state: 'completed so long ago that its marker is over',
    async prepare(world) {
      const id = await enqueueFirst(world)
      await world.drain([capturing()])
      await world.runtime.advance(400 * 86_400_000)
      return id
    },
    answer: 'enqueued',
  },
]

describe.each(storages)('enqueue while the key is held on $name', (kind) => {
  const open = worlds(kind)

  test.each(holders)('$state answers $answer', async ({ prepare, answer }) => {
    const world = open()
    const holderId = await prepare(world)
    const result = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    expect(result.outcome).toBe(answer)
    if (answer === 'enqueued') expect(result.id).not.toBe(holderId)
    else expect(result.id).toBe(holderId)
  })

  test('the next holder of a dead key goes on with its generation: what is known of the operation is inherited', async () => {
    const world = open()
    await enqueueFirst(world)
    await world.drain([failing])
    const second = await enqueueFirst(world)
    expect((await world.job(second)).generation).toBe(1)
  })
})

/** Enqueues past the contract, as SQL or the command line do: the row has no key. */
async function enqueueRaw(world: World, row: string, payload: object = { row }): Promise<string> {
  const job = newJob(world.runtime, { type: raw.type, payload: JSON.stringify(payload) })
  expect(await world.driver.enqueue([job])).toEqual([{ kind: 'inserted' }])
  return job.id
}

function importing(run: (payload: { row: string }, ctx: Ctx) => Promise<void>, options: object = {}): Handler {
  const answers = { sideEffects: 'unique-constraint', whenInterrupted: 'resume' } as const
  return defineHandler(raw, { ...answers, ...options, run })
}

describe.each(storages)('raw enqueues on $name', (kind) => {
  const open = worlds(kind)

  test('get their key from the worker', async () => {
    const world = open()
    const id = await enqueueRaw(world, 'r1')
    await world.drain([importing(async () => undefined)])
    expect(await world.job(id)).toMatchObject({ state: 'completed', keyPrefix: 'r1', keyScope: 'import.row' })
    expect(await world.chokaq.enqueue(raw, { row: 'r1' })).toMatchObject({ outcome: 'already-completed', id })
  })

  test('of one key that are fetched together run once', async () => {
    const world = open()
    const ids = [await enqueueRaw(world, 'r1'), await enqueueRaw(world, 'r1'), await enqueueRaw(world, 'r1')]
    let runs = 0
    await world.drain([importing(async () => void (runs += 1))])
    expect(runs).toBe(1)
    const states = await Promise.all(ids.map((id) => world.state(id)))
    expect(states.sort()).toEqual(['completed', 'skipped', 'skipped'])
    const [winner] = (await world.chokaq.jobs.list('archive', { state: 'completed' })).jobs
    for (const event of world.of('job.skipped')) expect(event).toMatchObject({ duplicateOf: winner?.id })
    expect(await world.counter('jobs.completed')).toBe(1)
    expect(await world.counter('jobs.skipped')).toBe(2)
    expect(await world.counter('idempotency.claims', 'in_progress_duplicate')).toBe(2)
  })

  test('after a completed one are skipped with its result', async () => {
    const world = open()
    const first = await enqueueRaw(world, 'r1')
    await world.drain([importing(async () => undefined)])
    const second = await enqueueRaw(world, 'r1')
    await world.drain([importing(async () => undefined)])
    expect(await world.job(second)).toMatchObject({ state: 'skipped', duplicateOf: first, attempt: 0 })
    expect(await world.counter('idempotency.claims', 'completed_duplicate')).toBe(1)
  })

  test('that defer wait for the holder and are skipped when it is done', async () => {
    const world = open()
    const go = gate()
    const handler = importing(() => go.promise, { onDuplicate: 'defer' })
    const first = await enqueueRaw(world, 'r1')
    const worker = await world.start([handler])
    await world.runtime.settle()
    const second = await enqueueRaw(world, 'r1')
    await world.runtime.advance(1_000)
    expect(await world.job(second)).toMatchObject({ state: 'scheduled', keyHash: null, attempt: 0 })
    expect(world.of('job.deferred')).toMatchObject([{ jobId: second, delayMs: 5_000 }])
    go.open()
    await world.runtime.advance(10_000)
    expect(await world.state(first)).toBe('completed')
    expect(await world.job(second)).toMatchObject({ state: 'skipped', duplicateOf: first })
    await world.stop(worker)
  })

  test('with an empty key go to the DLQ and are counted', async () => {
    const world = open()
    const id = await enqueueRaw(world, '  ')
    await world.drain([importing(async () => undefined)])
    expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'EmptyKey', failureCount: 0 })
    expect(await world.counter('idempotency.claims', 'empty_key')).toBe(1)
  })

  test('that fail the schema, or whose payload is no object, are rejected', async () => {
    const world = open()
    const id = await enqueueRaw(world, '', { wrong: 1 })
    await world.drain([importing(async () => undefined)])
    expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'Rejected' })
  })

  test('with another payload under a held key are refused as KeyReused', async () => {
    const world = open()
    const go = gate()
    await enqueueRaw(world, 'r1')
    const worker = await world.start([importing(() => go.promise)])
    await world.runtime.settle()
    const other = await enqueueRaw(world, 'r1', { row: 'r1', extra: 1 })
    await world.runtime.advance(1_000)
    expect(await world.job(other)).toMatchObject({ state: 'dead', reason: 'KeyReused' })
    go.open()
    await world.stop(worker)
  })

  test('a stored key wins over the one the worker would compute', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(raw, { row: 'r1' })
    const { keyHash } = await world.job(id)
    // A newer deploy computes other keys for the same type.
    const newer = defineJob({
      type: raw.type,
      payload: z.object({ row: z.string() }),
      key: (p) => `new/${p.row}`,
      duplicateWindow: '1d',
      allowRaw: true,
    })
    const answers = { sideEffects: 'unique-constraint', whenInterrupted: 'resume' } as const
    await world.drain([defineHandler(newer, { ...answers, run: async () => undefined })])
    expect(await world.job(id)).toMatchObject({ state: 'completed', keyHash, keyPrefix: 'r1' })
  })
})

describe.each(storages)('claims on $name', (kind) => {
  const open = worlds(kind)

  test('are counted with exactly seven outcomes, in events as in the database', async () => {
    const world = open()
    await codeOf(world.chokaq.enqueue(capture, { paymentId: '' }))
    await world.chokaq.enqueue(capture, { paymentId: 'done' })
    await world.chokaq.enqueue(capture, { paymentId: 'dead' })
    await enqueueRaw(world, 'r1')
    await enqueueRaw(world, 'r1')
    const handlers = [
      capturing(
        (p) => (p.paymentId === 'dead' ? Promise.reject(new Error('no')) : Promise.resolve({ chargeId: 'c' })),
        {
          retry: { attempts: 1 },
        },
      ),
      importing(async () => undefined),
    ]
    await world.drain(handlers)
    await enqueueRaw(world, 'r1')
    await world.drain(handlers)
    const expected = {
      claimed: 3,
      completed: 2,
      completed_duplicate: 1,
      in_progress_duplicate: 1,
      released: 1,
      empty_key: 1,
      complete_conflict: 0,
    }
    for (const [outcome, count] of Object.entries(expected)) {
      expect(await world.counter('idempotency.claims', outcome), outcome).toBe(count)
      expect(world.of('idempotency.claim').filter((event) => event.outcome === outcome).length, outcome).toBe(count)
    }
  })

  test('idempotencyKey is one per name, key, generation and tenant, and stable over attempts and jobs', async () => {
    const world = open()
    const keys = new Map<string, string[]>()
    const handler = capturing(
      async (p, ctx) => {
        const of = `${p.paymentId}`
        keys.set(of, [...(keys.get(of) ?? []), ctx.idempotencyKey('charge'), ctx.idempotencyKey('refund')])
        throw new Error('again')
      },
      { retry: { attempts: 2 } },
    )
    await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    await world.chokaq.enqueue(capture, { paymentId: 'p2' })
    await world.drain([handler])
    const [charge, refund, ...again] = keys.get('p1') ?? []
    expect(charge).toMatch(/^[0-9a-f-]{36}$/)
    expect(again).toEqual([charge, refund])
    expect(new Set([charge, refund, ...(keys.get('p2') ?? [])]).size).toBe(4)

    const tenants: string[] = []
    const seeing = capturing(async (_p, ctx) => {
      tenants.push(ctx.idempotencyKey('charge'))
      return { chargeId: 'c' }
    })
    await world.chokaq.enqueue(capture, { paymentId: 'p1' }, { tenant: 'acme' })
    await world.drain([seeing])
    expect(tenants[0]).not.toBe(charge)
  })

  test('idempotencyKey of a job without a key hangs on the job', async () => {
    const world = open()
    const keys: string[] = []
    const handler = resizing(
      async (_p, ctx) => {
        keys.push(ctx.idempotencyKey('x'))
        throw new Error('again')
      },
      { retry: { attempts: 2 } },
    )
    await world.chokaq.enqueue(resize, { id: 'a' })
    await world.drain([handler])
    await world.chokaq.enqueue(resize, { id: 'a' })
    await world.drain([handler])
    expect(keys[0]).toBe(keys[1])
    expect(new Set(keys).size).toBe(2)
  })
})

describe('a marker that no worker wrote', () => {
  const open = worlds(sqliteOnFile)

  test('raises the alarm complete_conflict and parks the job with all evidence', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    const { keyHash } = await world.job(id)
    const handler = capturing(async () => {
      const db = new Database(world.path)
      db.prepare(
        `INSERT INTO chokaq_idempotency_markers (key_hash, state, job_id, generation, token, created_at, expires_at)
         VALUES (?, 'completed', 'somebody-else', 1, 0, 0, 9e15)`,
      ).run(keyHash)
      db.close()
      return { chargeId: 'mine' }
    })
    await world.drain([handler])
    expect(await world.job(id)).toMatchObject({
      state: 'dead',
      reason: 'CompleteConflict',
      result: '{"chargeId":"mine"}',
      duplicateOf: 'somebody-else',
    })
    expect(await world.counter('idempotency.claims', 'complete_conflict')).toBe(1)
    expect(world.of('idempotency.claim').map(({ outcome }) => outcome)).toContain('complete_conflict')
    expect(world.of('job.dead')).toMatchObject([{ reason: 'CompleteConflict' }])
  })
})
