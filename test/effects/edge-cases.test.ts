// Edge cases that no other test has as its subject: keys made of an attempt, effects and transactions, replicas, outboxes.
import { randomUUID } from 'node:crypto'
import { defineJob } from 'chokaq'
import { postgres } from 'chokaq/postgres'
import { createFakeRuntime } from 'chokaq/testing'
import { defineHandler, RetryAfter, type Ctx } from 'chokaq/worker'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { ClaimRequest, StorageDriver } from '../../src/core/storage.ts'
import { betterSqlite3 } from '../../src/storage/sqlite/database.ts'
import { keyedJob, keyedPolicy, keyOf, newJob, policy } from '../../src/testing/conformance/new-job.ts'
import { capture, resize, resizing } from '../engine/contracts.ts'
import { sharedStorages, storages } from '../engine/storages.ts'
import { ada, codeOf, worlds } from '../engine/world.ts'
import { createDatabase } from '../postgres/database.ts'
import { openStorage, scratchPath, spyDriver } from '../storage/scratch-sqlite.ts'
import { chargeOf, providerOf } from './charging.ts'

const pay = { paymentId: 'p1', amount: 5 }

/** ctx.transaction or ctx.transactionSync, whichever the storage has. `call` must not wait for anything on SQLite. */
async function inTransaction<T>(ctx: Ctx, kind: string, name: string, call: () => T): Promise<unknown> {
  if (kind === 'postgres') return ctx.transaction(name, async () => call())
  return ctx.transactionSync(name, call)
}

describe.each(storages)('keys on $name', (kind) => {
  const open = worlds(kind)
  const keyed = (key: (p: { order: string }) => string, allowRaw = false) =>
    defineJob({
      type: 'order.ship.v1',
      payload: z.object({ order: z.string() }),
      key,
      duplicateWindow: '1d',
      allowRaw,
    })

  test('E18 a key with random or counted data is refused before anything is stored', async () => {
    const world = open()
    let count = 0
    for (const key of [() => randomUUID(), (p: { order: string }) => `${p.order} ${(count += 1)}`]) {
      const job = keyed(key)
      expect(await codeOf(world.chokaq.enqueue(job, { order: 'o1' }))).toBe('CHOKAQ_CONTRACT_INVALID')
      expect((await world.chokaq.jobs.list('hot')).jobs).toEqual([])
    }
  })

  test('E18 a key that changes between attempts stays the one that was stored', async () => {
    // A job that resumes is started by its fetch, one under review by its worker, and both find the key.
    for (const whenInterrupted of ['resume', 'review'] as const) {
      for (const isRaw of [false, true]) {
        const world = open()
        let token = 'first'
        const job = keyed((p) => `${p.order} ${token}`, true)
        const seen: string[] = []
        const handler = defineHandler(job, {
          sideEffects: 'unique-constraint',
          whenInterrupted,
          async run(_p, ctx) {
            seen.push(ctx.idempotencyKey('ship'))
            token = `renewed ${seen.length}`
            if (seen.length < 3) throw new RetryAfter(1_000, 'later')
          },
        })
        if (isRaw)
          await world.driver.enqueue([newJob(world.runtime, { type: 'order.ship.v1', payload: '{"order":"o1"}' })])
        else await world.chokaq.enqueue(job, { order: 'o1' })
        await world.drain([handler])
        expect(seen).toHaveLength(3)
        expect(new Set(seen).size).toBe(1)
      }
    }
  })
})

describe.each(storages)('effects and transactions on $name', (kind) => {
  const open = worlds(kind)

  test('E34 an effect inside a transaction is refused and writes nothing; after it, it is called', async () => {
    const world = open()
    const provider = providerOf(world)
    const codes: string[] = []
    const handler = defineHandler(capture, {
      sideEffects: 'effects',
      effects: { charge: chargeOf(provider) },
      whenInterrupted: 'resume',
      async run(p, ctx) {
        for (const rollsBack of [false, true]) {
          let inside: Promise<unknown> = Promise.resolve()
          const done = inTransaction(ctx, kind.name, `mark ${rollsBack}`, () => {
            inside = codeOf(ctx.effects.charge(p)).then((code) => codes.push(code))
            if (rollsBack) throw new Error('rolled back')
          })
          await done.catch(() => undefined)
          await inside
        }
        expect(provider.calls).toEqual([])
        expect(await world.driver.inspector.effects(ctx.jobId)).toMatchObject([{ kind: 'checkpoint' }])
        return { chargeId: (await ctx.effects.charge(p)).id }
      },
    })
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([handler])
    expect(codes).toEqual(['CHOKAQ_EFFECT_IN_TRANSACTION', 'CHOKAQ_EFFECT_IN_TRANSACTION'])
    expect(await world.job(id)).toMatchObject({ state: 'completed', attempt: 1 })
    expect(provider.acts).toHaveLength(1)
  })

  test('E35 a transaction that the database takes back is run again by the next attempt only, behind its effect', async () => {
    const world = open()
    const provider = providerOf(world)
    const runs: number[] = []
    const handler = defineHandler(capture, {
      sideEffects: 'effects',
      effects: { charge: chargeOf(provider) },
      whenInterrupted: 'resume',
      async run(p, ctx) {
        const { id } = await ctx.effects.charge(p)
        await inTransaction(ctx, kind.name, 'mark', () => {
          runs.push(ctx.attempt)
          if (ctx.attempt === 1) throw Object.assign(new Error('could not serialize access'), { code: '40001' })
        })
        if (ctx.attempt < 3) throw new Error('after the commit')
        return { chargeId: id }
      },
    })
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([handler])
    expect(await world.job(id)).toMatchObject({ state: 'completed', attempt: 3, result: '{"chargeId":"ch_1"}' })
    expect(runs).toEqual([1, 2])
    expect(provider.calls).toHaveLength(1)
    const rows = await world.driver.inspector.effects(id)
    expect(rows.map(({ kind: of, state }) => `${of} ${state}`)).toEqual(['effect done', 'checkpoint done'])
  })
})

describe.each(storages)('an outbox on $name', (kind) => {
  const open = worlds(kind)
  const publish = defineJob({
    type: 'outbox.publish.v1',
    payload: z.object({ aggregate: z.string(), sequence: z.number(), id: z.string() }),
    key: (p) => p.id,
    duplicateWindow: '1d',
  })
  const message = (aggregate: string, sequence: number) => ({ aggregate, sequence, id: `${aggregate}-${sequence}` })

  test('E45 a message that cannot be sent waits for a person after its attempts, and blocks nobody', async () => {
    const world = open()
    const sent: string[] = []
    let isPoison = true
    let calls = 0
    const relay = defineHandler(publish, {
      sideEffects: 'unique-constraint',
      whenInterrupted: 'resume',
      retry: { attempts: 3 },
      async run(p) {
        if (p.id === 'a-1' && isPoison) {
          calls += 1
          throw new Error('too large for the broker')
        }
        sent.push(p.id)
      },
    })
    const poison = (await world.chokaq.enqueue(publish, message('a', 1))).id
    await world.chokaq.enqueueMany(publish, [message('a', 2), message('a', 3), message('b', 1)])
    await world.drain([relay])
    expect(sent.toSorted()).toEqual(['a-2', 'a-3', 'b-1'])
    expect(calls).toBe(3)
    expect(await world.job(poison)).toMatchObject({ state: 'dead', reason: 'MaxRetriesExceeded' })
    // Mended, it follows the others: its sequence tells the receiver where it belongs.
    isPoison = false
    expect(await world.chokaq.dlq.resurrect(poison, { mode: 'continue' }, ada)).toMatchObject({ kind: 'resurrected' })
    await world.drain([relay])
    expect(sent.at(-1)).toBe('a-1')
  })

  test('E43 a message under a smaller id and an older time is taken after younger ones were', async () => {
    const world = open()
    const older = newJob(world.runtime, { type: resize.type, payload: '{"id":"older"}' })
    await world.runtime.advance(60_000)
    const seen: string[] = []
    const handler = resizing(async (p) => void seen.push(p.id))
    await world.chokaq.enqueue(resize, { id: 'younger' })
    await world.drain([handler])
    await world.driver.enqueue([older])
    await world.drain([handler])
    expect(seen).toEqual(['younger', 'older'])
  })
})

const withOwnTransactions = sharedStorages.filter(({ name }) => name === 'postgres')

describe.each(withOwnTransactions)('a transaction that commits late on $name', (kind) => {
  const open = worlds(kind)

  test('E43 its job is taken, though younger ones were taken while it was open', async () => {
    const world = open()
    const client = new pg.Client({ connectionString: world.path })
    await client.connect()
    try {
      await world.driver.ready()
      await client.query('BEGIN')
      await world.chokaq.enqueue(resize, { id: 'late' }, { tx: client })
      await world.chokaq.enqueue(resize, { id: 'younger' })
      const seen: string[] = []
      const handler = resizing(async (p) => void seen.push(p.id))
      await world.drain([handler])
      expect(seen).toEqual(['younger'])
      await client.query('COMMIT')
      await world.drain([handler])
      expect(seen).toEqual(['younger', 'late'])
    } finally {
      await client.end()
    }
  })
})

describe('a database that can only be read, as a replica', () => {
  /** What a worker asks before it runs a handler: each must be answered by a write, so that no copy can answer it. */
  async function expectRefused(writable: StorageDriver, readable: StorageDriver, isRefusal: RegExp): Promise<void> {
    const runtime = createFakeRuntime()
    const [plain, keyed] = [policy(), keyedPolicy({ whenInterrupted: 'review' })]
    await writable.enqueue([newJob(runtime), keyedJob(runtime, 'order-1')])
    const fetch = { workerId: 'w', queue: 'default', limit: 10, policies: [plain] }
    const reasons: string[] = []
    const refused = async (call: Promise<unknown>): Promise<void> => {
      reasons.push(await codeOf(call))
    }
    await refused(readable.fetch(fetch))
    const info = {
      id: 'w',
      name: 'w',
      identity: runtime.processes.self(),
      queues: ['default'],
      types: [],
      concurrency: 1,
    }
    await writable.registerWorker(info)
    const [job] = await writable.fetch({ ...fetch, policies: [keyed] })
    if (job === undefined) throw new Error('nothing was fetched')
    const claim: ClaimRequest = { lease: job.lease, key: keyOf(runtime, 'order-1'), fingerprint: job.fingerprint ?? '' }
    await refused(readable.claim([claim]))
    await refused(readable.start([{ lease: job.lease, policy: keyed }]))
    expect(reasons).toEqual(reasons.map(() => expect.stringMatching(isRefusal) as string))
    expect(reasons).toHaveLength(3)
    expect((await writable.inspector.get(job.lease.jobId))?.state).toBe('fetched')
    expect((await writable.start([{ lease: job.lease, policy: keyed }])).map(({ kind }) => kind)).toEqual(['started'])
  }

  test('E36 on SQLite it hands out nothing, claims nothing and starts nothing', async () => {
    const path = scratchPath()
    const runtime = createFakeRuntime()
    const writable = openStorage(path, runtime)
    await writable.ready()
    const driver = spyDriver((at) => betterSqlite3.open(at))
    const readable = openStorage(path, runtime, { driver })
    await readable.ready()
    for (const db of driver.opened) db.exec('PRAGMA query_only = ON')
    await expectRefused(writable, readable, /^CHOKAQ_STORAGE_READ_ONLY$/)
  })

  test('E36 on PostgreSQL it hands out nothing, claims nothing and starts nothing', async () => {
    const database = await createDatabase()
    try {
      await database.query(`CREATE ROLE chokaq_reader LOGIN; GRANT USAGE ON SCHEMA chokaq TO chokaq_reader;
        GRANT SELECT ON ALL TABLES IN SCHEMA chokaq TO chokaq_reader`)
      const url = new URL(database.url)
      url.username = 'chokaq_reader'
      const runtime = createFakeRuntime()
      const writable = postgres(database.url).open(runtime)
      const readable = postgres(url.href, { migrate: false }).open(runtime)
      try {
        await expectRefused(writable, readable, /^CHOKAQ_CONFIG_INVALID$/)
      } finally {
        await Promise.all([writable.close(), readable.close()])
        await database.query('DROP OWNED BY chokaq_reader; DROP ROLE chokaq_reader')
      }
    } finally {
      await database.drop()
    }
  })
})
