// Jobs and the application's own rows in one synchronous transaction: enqueueSync, the outbox, completeSync.
import Database from 'better-sqlite3'
import type { ChokaQError } from 'chokaq'
import { defineHandler, type Ctx, type Handler } from 'chokaq/worker'
import { afterEach, describe, expect, test } from 'vitest'
import { capture, capturing, resize, resizing } from './contracts.ts'
import { sqliteInMemory, sqliteOnFile } from './sqlite-storage.ts'
import { gate, worlds, type World } from './world.ts'

const handles: Database.Database[] = []

/** The application's connection to the file of the jobs, with a table of its own. */
async function application(world: World): Promise<Database.Database> {
  await world.chokaq.ready()
  const db = new Database(world.path)
  handles.push(db)
  db.pragma('synchronous = FULL')
  db.exec('CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY)')
  return db
}

function orders(db: Database.Database): unknown[] {
  return db.prepare('SELECT id FROM orders').pluck().all()
}

function codeThrown(call: () => unknown): string {
  try {
    call()
    return 'accepted'
  } catch (error) {
    return (error as ChokaQError).code
  }
}

afterEach(() => {
  for (const db of handles.splice(0)) db.close()
})

describe('enqueueSync', () => {
  const open = worlds(sqliteOnFile)

  test('commits with the rows of the application', async () => {
    const world = open()
    const db = await application(world)
    const { id } = db.transaction(() => {
      db.prepare('INSERT INTO orders VALUES (?)').run('o1')
      return world.chokaq.enqueueSync(resize, { id: 'a' }, { tx: db })
    })()
    expect(await world.state(id)).toBe('pending')
    expect(orders(db)).toEqual(['o1'])
    expect(await world.drain([resizing(async () => undefined)])).toBe(1)
  })

  test('rolls back with them', async () => {
    const world = open()
    const db = await application(world)
    const doomed = db.transaction(() => {
      db.prepare('INSERT INTO orders VALUES (?)').run('o1')
      world.chokaq.enqueueSync(resize, { id: 'a' }, { tx: db })
      throw new Error('changed my mind')
    })
    expect(doomed).toThrow('changed my mind')
    expect(orders(db)).toEqual([])
    expect((await world.chokaq.jobs.list('hot')).jobs).toEqual([])
    expect(await world.counter('jobs.enqueued')).toBe(0)
  })

  test('rolls back with a savepoint of the application alone', async () => {
    const world = open()
    const db = await application(world)
    const inner = db.transaction((id: string) => {
      world.chokaq.enqueueSync(resize, { id }, { tx: db })
      if (id === 'b') throw new Error('inner')
    })
    db.transaction(() => {
      inner('a')
      expect(() => inner('b')).toThrow('inner')
    })()
    expect((await world.chokaq.jobs.list('hot')).jobs.map(({ payload }) => payload)).toEqual(['{"id":"a"}'])
  })

  test('answers duplicates and refuses what enqueue refuses', async () => {
    const world = open()
    const db = await application(world)
    const first = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    const inTransaction = <T>(run: () => T): T => db.transaction(run)()
    expect(inTransaction(() => world.chokaq.enqueueSync(capture, { paymentId: 'p1' }, { tx: db }))).toEqual({
      outcome: 'already-active',
      id: first.id,
    })
    const codes = [
      { paymentId: '' },
      { paymentId: 'p1', amount: 2 },
      { paymentId: 3 as never },
      { paymentId: '\ud800' },
    ].map((payload) => codeThrown(() => inTransaction(() => world.chokaq.enqueueSync(capture, payload, { tx: db }))))
    expect(codes).toEqual(['CHOKAQ_EMPTY_KEY', 'CHOKAQ_KEY_REUSED', 'CHOKAQ_PAYLOAD_INVALID', 'CHOKAQ_NOT_JSON'])
  })

  test('is refused outside a transaction and without a handle', async () => {
    const world = open()
    const db = await application(world)
    expect(codeThrown(() => world.chokaq.enqueueSync(resize, { id: 'a' }, { tx: db }))).toBe(
      'CHOKAQ_NOT_IN_TRANSACTION',
    )
    const without = (): unknown => world.chokaq.enqueueSync(resize, { id: 'a' }, {} as never)
    expect(codeThrown(without)).toBe('CHOKAQ_TX_UNSUPPORTED')
    expect((await world.chokaq.jobs.list('hot')).jobs).toEqual([])
  })

  test('is refused on a handle of another file', async () => {
    const world = open()
    const other = open()
    const db = await application(other)
    const call = (): unknown => db.transaction(() => world.chokaq.enqueueSync(resize, { id: 'a' }, { tx: db }))()
    expect(codeThrown(call)).toBe('CHOKAQ_TX_UNSUPPORTED')
  })

  test('wakes the worker of the same process', async () => {
    const world = open()
    const db = await application(world)
    const worker = await world.start([resizing(async () => 1)])
    await world.runtime.settle()
    const { id } = db.transaction(() => world.chokaq.enqueueSync(resize, { id: 'a' }, { tx: db }))()
    await world.runtime.settle()
    expect(await world.state(id)).toBe('completed')
    await world.stop(worker)
  })
})

describe('in memory', () => {
  const open = worlds(sqliteInMemory)

  test('no other handle reaches the jobs, and that is said', async () => {
    const world = open()
    const db = new Database(':memory:')
    handles.push(db)
    const call = (): unknown => db.transaction(() => world.chokaq.enqueueSync(resize, { id: 'a' }, { tx: db }))()
    expect(codeThrown(call)).toBe('CHOKAQ_TX_UNSUPPORTED')
  })
})

describe('ctx.enqueueSync, the outbox of a handler', () => {
  const open = worlds(sqliteOnFile)

  test('commits with the rows, and the next attempt enqueues no second child', async () => {
    const world = open()
    const db = await application(world)
    const handler = capturing(async (p, ctx) => {
      db.transaction(() => {
        db.prepare('INSERT OR IGNORE INTO orders VALUES (?)').run(p.paymentId)
        ctx.enqueueSync(resize, { id: 'child' }, { tx: db })
      })()
      if (ctx.attempt === 1) throw new Error('after the commit')
      return { chargeId: 'c' }
    })
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    await world.drain([handler])
    const children = (await world.chokaq.jobs.list('hot', { type: resize.type })).jobs
    expect(children).toMatchObject([{ payload: '{"id":"child"}', parentId: id }])
    expect(orders(db)).toEqual(['p1'])
  })

  test('tells children of one type apart by item', async () => {
    const world = open()
    const db = await application(world)
    const handler = capturing(async (_p, ctx) => {
      db.transaction(() => {
        ctx.enqueueSync(resize, { id: 'a' }, { tx: db, item: 'a' })
        ctx.enqueueSync(resize, { id: 'b' }, { tx: db, item: 'b' })
      })()
      return { chargeId: 'c' }
    })
    await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    await world.drain([handler])
    expect((await world.chokaq.jobs.list('hot', { type: resize.type })).jobs).toHaveLength(2)
  })
})

describe('ctx.completeSync', () => {
  const open = worlds(sqliteOnFile)

  function completing(db: Database.Database, run: (ctx: Ctx, complete: () => unknown) => Promise<unknown>): Handler {
    return defineHandler(capture, {
      sideEffects: 'same-transaction',
      whenInterrupted: 'resume',
      retry: { attempts: 2 },
      run: (p, ctx) => {
        const complete = db.transaction(() => {
          db.prepare('INSERT INTO orders VALUES (?)').run(`${p.paymentId}-${ctx.attempt}`)
          return ctx.completeSync(db, { chargeId: 'c' })
        })
        return run(ctx, complete) as Promise<{ chargeId: string }>
      },
    })
  }

  test('commits rows, completion, marker, result and children together', async () => {
    const world = open()
    const db = await application(world)
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    const handler = completing(db, async (ctx, complete) => {
      await ctx.enqueue(resize, { id: 'child' })
      return complete()
    })
    expect(await world.drain([handler])).toBe(1)
    expect(await world.job(id)).toMatchObject({ state: 'completed', result: '{"chargeId":"c"}', attempt: 1 })
    expect(orders(db)).toEqual(['p1-1'])
    expect((await world.chokaq.jobs.list('hot')).jobs).toMatchObject([{ payload: '{"id":"child"}', parentId: id }])
    expect(await world.counter('jobs.completed')).toBe(1)
    expect(world.of('job.completed')).toHaveLength(1)
    expect(await world.chokaq.enqueue(capture, { paymentId: 'p1' })).toMatchObject({ outcome: 'already-completed', id })
  })

  test('that rolls back leaves nothing, and the attempt has failed', async () => {
    const world = open()
    const db = await application(world)
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    const handler = completing(db, async (ctx, complete) => {
      if (ctx.attempt > 1) return complete()
      return db.transaction(() => {
        complete()
        throw new Error('rolled back')
      })()
    })
    await world.drain([handler])
    expect(orders(db)).toEqual(['p1-2'])
    expect(await world.job(id)).toMatchObject({ state: 'completed', attempt: 2, failureCount: 1 })
    expect(world.of('job.retried')).toMatchObject([{ failure: { message: 'rolled back' } }])
  })

  test('whose roll-back is hidden is found out', async () => {
    const world = open()
    const db = await application(world)
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    const handler = completing(db, async (_ctx, complete) => {
      let token: unknown
      try {
        db.transaction(() => {
          token = complete()
          throw new Error('rolled back')
        })()
      } catch {
        // The handler goes on as if nothing had happened.
      }
      return token
    })
    await world.drain([handler])
    expect(await world.job(id)).toMatchObject({ state: 'dead', failure: { code: 'CHOKAQ_COMPLETE_ROLLED_BACK' } })
  })

  test('whose value is not returned is completed all the same where it committed', async () => {
    const world = open()
    const db = await application(world)
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    const handler = completing(db, async (_ctx, complete) => {
      complete()
      return { chargeId: 'another' }
    })
    await world.drain([handler])
    expect(await world.job(id)).toMatchObject({ state: 'completed', result: '{"chargeId":"c"}', attempt: 1 })
    expect(await world.counter('jobs.completed')).toBe(1)
    expect(await world.counter('jobs.failed')).toBe(0)
  })

  test('twice, and children after it, are refused', async () => {
    const world = open()
    const db = await application(world)
    await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    const codes: string[] = []
    const handler = completing(db, async (ctx, complete) => {
      const token = complete()
      codes.push(codeThrown(() => db.transaction(() => ctx.completeSync(db, { chargeId: 'd' }))()))
      codes.push(codeThrown(() => db.transaction(() => ctx.enqueueSync(resize, { id: 'x' }, { tx: db }))()))
      await ctx.enqueue(resize, { id: 'x' }).catch((error: unknown) => codes.push((error as ChokaQError).code))
      return token
    })
    await world.drain([handler])
    expect(codes).toEqual(['CHOKAQ_COMPLETE_TWICE', 'CHOKAQ_COMPLETE_TWICE', 'CHOKAQ_COMPLETE_TWICE'])
    expect((await world.chokaq.jobs.list('hot')).jobs).toEqual([])
  })

  test('checks the result by its schema', async () => {
    const world = open()
    const db = await application(world)
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    const handler = completing(db, async (ctx) => db.transaction(() => ctx.completeSync(db, { charge: 1 } as never))())
    await world.drain([handler])
    expect(await world.job(id)).toMatchObject({ state: 'dead', failure: { code: 'CHOKAQ_RESULT_INVALID' } })
  })

  test('outside a transaction is refused', async () => {
    const world = open()
    const db = await application(world)
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    await world.drain([completing(db, async (ctx) => ctx.completeSync(db, { chargeId: 'c' }))])
    expect(await world.job(id)).toMatchObject({ state: 'dead', failure: { code: 'CHOKAQ_NOT_IN_TRANSACTION' } })
  })

  test('after the lease was lost rolls the rows back', async () => {
    const world = open()
    const db = await application(world)
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    const go = gate()
    let code = ''
    const handler = completing(db, async (ctx, complete) => {
      if (ctx.attempt > 1) return complete()
      await go.promise
      code = codeThrown(complete)
      return undefined
    })
    await world.start([handler])
    await world.runtime.settle()
    // Somebody declares the worker dead and takes its job back, while it still runs.
    const [beat] = await world.driver.readBeats()
    await world.driver.rescue({ deadWorkerIds: [beat?.workerId ?? ''], provenDeadIds: [], limit: 10 })
    go.open()
    await world.runtime.settle()
    expect(code).toBe('CHOKAQ_LEASE_LOST')
    await world.runtime.advance(10_000)
    expect(orders(db)).toEqual(['p1-2'])
    expect(await world.state(id)).toBe('completed')
  })
})
