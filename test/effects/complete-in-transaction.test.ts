// Effects and a completion in the handler's own transaction: what the effects did is recorded with it.
import Database from 'better-sqlite3'
import { defineHandler, type Handler } from 'chokaq/worker'
import { afterEach, describe, expect, test } from 'vitest'
import { capture } from '../engine/contracts.ts'
import { sqliteOnFile } from '../engine/sqlite-storage.ts'
import { worlds, type World } from '../engine/world.ts'
import { chargeOf, providerOf } from './charging.ts'
import type { FakeProvider } from './fake-provider.ts'

const pay = { paymentId: 'p1', amount: 5 }
const handles: Database.Database[] = []
afterEach(() => {
  for (const db of handles.splice(0)) db.close()
})

async function application(world: World): Promise<Database.Database> {
  await world.chokaq.ready()
  const db = new Database(world.path)
  handles.push(db)
  db.pragma('synchronous = FULL')
  return db
}

function completing(db: Database.Database, provider: FakeProvider, swallow = false): Handler {
  return defineHandler(capture, {
    sideEffects: 'effects',
    effects: { charge: chargeOf(provider) },
    whenInterrupted: 'resume',
    retry: { attempts: 2 },
    async run(p, ctx) {
      const called = ctx.effects.charge({ paymentId: p.paymentId, amount: p.amount })
      const { id } = swallow ? await called.catch(() => ({ id: 'unknown' })) : await called
      return db.transaction(() => ctx.completeSync(db, { chargeId: id })).immediate()
    },
  })
}

describe('completeSync behind an effect', () => {
  const open = worlds(sqliteOnFile)

  test('records the outcome that is still on its way, and completes', async () => {
    const world = open()
    const provider = providerOf(world)
    const db = await application(world)
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([completing(db, provider)])
    expect(await world.job(id)).toMatchObject({ state: 'completed', result: '{"chargeId":"ch_1"}', attempt: 1 })
    expect(await world.driver.inspector.effects(id)).toMatchObject([{ state: 'done' }])
  })

  test('is refused over an effect in doubt, and the doubt is dealt with first', async () => {
    const world = open()
    const provider = providerOf(world)
    provider.mishap = () => (provider.calls.length === 1 ? 'lose-answer' : 'none')
    const db = await application(world)
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([completing(db, provider, true)])
    const job = await world.job(id)
    expect(job).toMatchObject({ state: 'completed', result: '{"chargeId":"ch_1"}', attempt: 2 })
    expect(job.history).toContain('CHOKAQ_COMPLETE_IN_DOUBT')
    expect([provider.calls.length, provider.acts.length]).toEqual([2, 1])
  })
})
