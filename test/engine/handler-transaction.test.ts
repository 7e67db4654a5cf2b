// A handler's own rows: with a checkpoint (ctx.transaction, ctx.transactionSync) or with the completion (ctx.complete).
import { createChokaQ, type ChokaQ, type JobRecord } from 'chokaq'
import { postgres } from 'chokaq/postgres'
import { createWorker, defineEffect, defineHandler, noKey, type Handler } from 'chokaq/worker'
import pg from 'pg'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createDatabase } from '../postgres/database.ts'
import { capture, capturing, resize } from './contracts.ts'
import { sqliteInMemory, sqliteOnFile } from './sqlite-storage.ts'
import { worlds } from './world.ts'

const soonAgain = { retry: { attempts: 3, backoff: { base: 10, cap: 10 } }, sideEffects: 'same-transaction' }
const twice = { retry: { attempts: 3 }, sideEffects: 'same-transaction' }
const act = defineEffect({ name: 'act', provider: noKey('nobody'), run: async () => 1 })

describe.each([sqliteInMemory, sqliteOnFile])('ctx.transactionSync on $name', (kind) => {
  const open = worlds(kind)

  test('commits rows, child and checkpoint once, and replays the result to later attempts', async () => {
    const world = open()
    let runs = 0
    const handler = capturing(async (p, ctx) => {
      const marked = ctx.transactionSync('mark', (tx) => {
        runs += 1
        tx.prepare('CREATE TABLE orders (id TEXT PRIMARY KEY)').run()
        tx.prepare('INSERT INTO orders VALUES (?)').run(p.paymentId)
        ctx.enqueueSync(resize, { id: 'child' }, { tx })
        return { run: runs }
      })
      if (ctx.attempt === 1) throw new Error('after the commit')
      return { chargeId: `run ${marked.run}` }
    }, twice)
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    await world.drain([handler])
    expect(await world.job(id)).toMatchObject({ state: 'completed', attempt: 2, result: '{"chargeId":"run 1"}' })
    expect(runs).toBe(1)
    expect((await world.chokaq.jobs.list('hot')).jobs).toMatchObject([{ payload: '{"id":"child"}' }])
  })

  test('that throws leaves nothing, and the next attempt runs it', async () => {
    const world = open()
    const handler = capturing(async (_p, ctx) => {
      ctx.transactionSync('mark', (tx) => {
        tx.prepare('CREATE TABLE orders (id TEXT PRIMARY KEY)').run()
        if (ctx.attempt === 1) throw new Error('rolled back')
      })
      return { chargeId: 'c' }
    }, twice)
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    await world.drain([handler])
    expect(await world.job(id)).toMatchObject({ state: 'completed', attempt: 2 })
  })

  test('refuses a promise, one inside another, a name used twice, and an effect inside', async () => {
    const world = open()
    const codes: unknown[] = []
    const codeOf = (call: () => unknown): void => {
      try {
        call()
      } catch (error) {
        codes.push((error as { code?: unknown }).code)
      }
    }
    const handler = defineHandler(capture, {
      sideEffects: 'effects',
      effects: { act },
      whenInterrupted: 'resume',
      async run(_p, ctx) {
        codeOf(() => ctx.transactionSync('late', async () => undefined))
        ctx.transactionSync('once', () => codeOf(() => ctx.transactionSync('nested', () => undefined)))
        codeOf(() => ctx.transactionSync('once', () => undefined))
        let inside: Promise<unknown> = Promise.resolve()
        ctx.transactionSync('effect', () => {
          inside = ctx.effects.act(1)
        })
        await inside.catch((error: unknown) => codes.push((error as { code?: unknown }).code))
        return { chargeId: 'c' }
      },
    })
    await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    await world.drain([handler])
    expect(codes).toEqual([
      'CHOKAQ_TX_UNSUPPORTED',
      'CHOKAQ_TX_UNSUPPORTED',
      'CHOKAQ_CHECKPOINT_REPEATED',
      'CHOKAQ_EFFECT_IN_TRANSACTION',
    ])
  })
})

const database = await createDatabase({ isEmpty: true })
afterAll(() => database.drop())

/** In real time: the handler's own connections are none of the engine's, so virtual time would run away from them. */
describe('on PostgreSQL', () => {
  const pool = new pg.Pool({ connectionString: database.url })
  let count = 0
  let chokaq: ChokaQ
  let table = ''

  beforeEach(async () => {
    count += 1
    chokaq = createChokaQ({ storage: postgres(database.url, { schema: `own rows ${count}` }) })
    table = `public.orders_${count}`
    await pool.query(`CREATE TABLE ${table} (id text PRIMARY KEY)`)
  })
  afterEach(() => chokaq.close())
  afterAll(() => pool.end())

  async function rows(): Promise<unknown[]> {
    return (await pool.query<{ id: string }>(`SELECT id FROM ${table} ORDER BY id`)).rows.map(({ id }) => id)
  }

  /** Runs one payment to its end and gives its record. */
  async function run(handler: Handler): Promise<JobRecord | undefined> {
    const worker = createWorker({ chokaq, handlers: [handler], poll: 20 })
    const completed = new Promise<string>((resolve) => {
      chokaq.subscribe((event) => {
        if (event.name === 'job.completed') resolve(event.jobId)
      })
    })
    await chokaq.enqueue(capture, { paymentId: 'p1' })
    await worker.start()
    const id = await completed
    await worker.stop()
    return chokaq.jobs.get(id)
  }

  test('ctx.transaction commits rows, child and checkpoint once, and replays the result', async () => {
    let runs = 0
    const handler = capturing(async (p, ctx) => {
      const marked = await ctx.transaction('mark', async (tx) => {
        runs += 1
        await tx.query(`INSERT INTO ${table} VALUES ($1)`, [p.paymentId])
        await ctx.enqueue(resize, { id: 'child' }, { tx })
        return { run: runs }
      })
      if (ctx.attempt === 1) throw new Error('after the commit')
      return { chargeId: `run ${marked.run}` }
    }, soonAgain)
    expect(await run(handler)).toMatchObject({ state: 'completed', attempt: 2, result: '{"chargeId":"run 1"}' })
    expect(await rows()).toEqual(['p1'])
    expect((await chokaq.jobs.list('hot')).jobs).toMatchObject([{ payload: '{"id":"child"}' }])
  })

  test('ctx.transaction rolls back with what its callback throws, and the error reaches the handler unchanged', async () => {
    const thrown: unknown[] = []
    const handler = capturing(async (p, ctx) => {
      const mark = ctx.transaction('mark', async (tx) => {
        await tx.query(`INSERT INTO ${table} VALUES ($1)`, [p.paymentId])
        await tx.query(`INSERT INTO ${table} VALUES ($1)`, [p.paymentId])
      })
      await mark.catch((error: unknown) => thrown.push((error as { code?: unknown }).code))
      return { chargeId: 'c' }
    }, soonAgain)
    expect(await run(handler)).toMatchObject({ state: 'completed', attempt: 1 })
    expect(thrown).toEqual(['23505'])
    expect(await rows()).toEqual([])
  })

  test('ctx.transaction inside another is refused, because it would commit by itself', async () => {
    const refusals: unknown[] = []
    const handler = capturing(async (_p, ctx) => {
      await ctx.transaction('outer', async () => {
        const inner = ctx.transaction('inner', async (tx) => void (await tx.query(`INSERT INTO ${table} VALUES ('x')`)))
        await inner.catch((error: unknown) => refusals.push(error))
      })
      return { chargeId: 'c' }
    }, soonAgain)
    expect(await run(handler)).toMatchObject({ state: 'completed', attempt: 1 })
    expect(refusals).toMatchObject([{ code: 'CHOKAQ_TX_UNSUPPORTED' }])
    expect(await rows()).toEqual([])
  })

  test('ctx.transaction that is not awaited fails the attempt and is rolled back, even one that never ends', async () => {
    const handler = capturing(async (p, ctx) => {
      let hasInserted: () => void = () => undefined
      const inserted = new Promise<void>((resolve) => (hasInserted = resolve))
      const mark = ctx.transaction('mark', async (tx) => {
        await tx.query(`INSERT INTO ${table} VALUES ($1)`, [p.paymentId])
        hasInserted()
        if (ctx.attempt === 1) await new Promise(() => undefined)
      })
      await (ctx.attempt === 1 ? inserted : mark)
      return { chargeId: 'c' }
    }, soonAgain)
    const job = await run(handler)
    expect(job).toMatchObject({ state: 'completed', attempt: 2 })
    expect(job?.history).toContain('CHOKAQ_CTX_REVOKED')
    expect(await rows()).toEqual(['p1'])
  })

  function completing(isDoomed: (attempt: number) => boolean): Handler {
    return capturing(async (p, ctx) => {
      const client = await pool.connect()
      try {
        await client.query('BEGIN')
        await client.query(`INSERT INTO ${table} VALUES ($1)`, [`${p.paymentId}-${ctx.attempt}`])
        const completed = await ctx.complete(client, { chargeId: 'c' })
        await client.query(isDoomed(ctx.attempt) ? 'ROLLBACK' : 'COMMIT')
        return completed
      } finally {
        client.release()
      }
    }, soonAgain)
  }

  test('ctx.complete commits rows and completion together', async () => {
    const job = await run(completing(() => false))
    expect(job).toMatchObject({ state: 'completed', attempt: 1, result: '{"chargeId":"c"}' })
    expect(await rows()).toEqual(['p1-1'])
    expect(await chokaq.enqueue(capture, { paymentId: 'p1' })).toMatchObject({ outcome: 'already-completed' })
  })

  test('ctx.complete that rolls back leaves nothing, and the next attempt does both once', async () => {
    expect(await run(completing((attempt) => attempt === 1))).toMatchObject({ state: 'completed', attempt: 2 })
    expect(await rows()).toEqual(['p1-2'])
  })
})
