// What the record of an effect says when it is read late: after other jobs, after a person looked, or twice.
import { defineHandler, ReviewNeeded, RetryAfter, type Ctx, type Handler } from 'chokaq/worker'
import { describe, expect, test } from 'vitest'
import { capture } from '../engine/contracts.ts'
import { sharedStorages, storages } from '../engine/storages.ts'
import { ada, codeOf, gate, worlds, type World } from '../engine/world.ts'
import { chargeOf, providerOf } from './charging.ts'
import { keyless, type Charge, type FakeProvider } from './fake-provider.ts'

const pay = { paymentId: 'p1', amount: 5 }

type After = (charge: Charge, ctx: Ctx) => { chargeId: string } | Promise<{ chargeId: string }>

/** Charges, then does what the test says; a charge is undone into `refunds`. */
function charging(provider: FakeProvider, change: object, after: After, refunds: string[] = []): Handler {
  const undo = async (_input: unknown, { id }: Charge): Promise<void> => void refunds.push(id)
  return defineHandler(capture, {
    sideEffects: 'effects',
    effects: { charge: chargeOf(provider, { compensate: undo, ...change }) },
    whenInterrupted: 'resume',
    timeout: '1m',
    retry: { attempts: 3 },
    async run(p, ctx) {
      return after(await ctx.effects.charge({ paymentId: p.paymentId, amount: p.amount }), ctx)
    },
  })
}

const chargeId: After = ({ id }) => ({ chargeId: id })
const isDead = (world: World, id: string) => async () => (await world.state(id)) === 'dead'

describe.each(storages)('evidence that outlives its job on $name', (kind) => {
  const open = worlds(kind)

  test('what a cancelled new operation did is known to the next job of the key', async () => {
    const world = open()
    const provider = providerOf(world)
    provider.mishap = () => 'refuse'
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([charging(provider, {}, chargeId)])
    expect(await world.state(id)).toBe('dead')
    provider.mishap = () => 'none'
    await world.chokaq.dlq.resurrect(id, { mode: 'new-operation' }, ada)
    const waiting = charging(provider, {}, () => {
      throw new RetryAfter('1h')
    })
    await world.worker([waiting]).tick()
    expect(await world.chokaq.jobs.cancel(id, ada)).toEqual({ kind: 'cancelled' })
    const next = await world.chokaq.enqueue(capture, pay)
    await world.drain([charging(provider, {}, chargeId)])
    expect(await world.job(next.id)).toMatchObject({ state: 'completed', generation: 2 })
    expect(provider.countOf('p1')).toBe(1)
  })

  test('what a purged new operation did is known to the next job of the key', async () => {
    const world = open()
    const provider = providerOf(world)
    provider.mishap = () => 'refuse'
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([charging(provider, {}, chargeId)])
    provider.mishap = () => 'none'
    await world.chokaq.dlq.resurrect(id, { mode: 'new-operation' }, ada)
    const failing = charging(provider, {}, () => Promise.reject(new Error('later')))
    await world.drain([failing])
    expect(await world.chokaq.dlq.purge({ ids: [id] }, ada)).toBe(1)
    await world.chokaq.enqueue(capture, pay)
    await world.drain([charging(provider, {}, chargeId)])
    expect(provider.countOf('p1')).toBe(1)
  })

  test('a name that the record cannot hold is refused before it costs others their outcomes', async () => {
    const world = open()
    const provider = providerOf(world)
    const codes: string[] = []
    const handler = defineHandler(capture, {
      sideEffects: 'effects',
      effects: { charge: chargeOf(provider) },
      whenInterrupted: 'resume',
      async run(p, ctx) {
        const call = (item: string): Promise<string> => codeOf(ctx.effects.charge({ ...pay, ...p }, { item }))
        codes.push(await call('a\u0000b'), await call('x'.repeat(501)), await call('\ud800'), await call(7 as never))
        codes.push(await codeOf(ctx.memo('', () => 1)), await codeOf(ctx.memo('m\u0000', () => 1)))
        return chargeId(await ctx.effects.charge({ ...pay, ...p }, { item: 'fine' }), ctx)
      },
    })
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([handler])
    expect(codes).toEqual(Array(6).fill('CHOKAQ_OPTION_INVALID'))
    expect(await world.state(id)).toBe('completed')
  })

  test('one action that two calls report is undone once', async () => {
    const world = open()
    const provider = providerOf(world)
    const refunds: string[] = []
    const late = gate()
    provider.acted = () => (provider.acts.length === 1 ? late.promise : undefined)
    const parting = (): never => {
      throw new ReviewNeeded('this charge must not stand')
    }
    const worker = await world.start([charging(provider, {}, parting, refunds)])
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.runtime.runUntil(isDead(world, id))
    late.open()
    await world.runtime.runUntil(async () => {
      const shown = await world.chokaq.reviews.show(id)
      return shown?.effects.filter(({ state }) => state === 'done').length === 2
    })
    const { revision } = await world.job(id)
    await world.chokaq.reviews.compensate(id, { ...ada, revision })
    await world.runtime.runUntil(async () => (await world.state(id)) === 'completed')
    expect(refunds).toEqual(['ch_1'])
    expect(await world.chokaq.enqueue(capture, pay)).toMatchObject({ outcome: 'already-compensated' })
    await world.stop(worker)
  })
})

describe.each(sharedStorages)('an outcome that comes while a person decides on $name', (kind) => {
  const open = worlds(kind)

  async function inReview(world: World, late: Promise<void>): Promise<{ id: string; revision: number }> {
    const provider = providerOf(world, false)
    provider.acted = () => late
    await world.start([charging(provider, { provider: keyless }, chargeId)])
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.runtime.runUntil(isDead(world, id))
    const [review] = await world.chokaq.reviews.list()
    expect(review).toMatchObject({ id, effect: 'charge' })
    return { id, revision: review?.revision ?? 0 }
  }

  test('a decision on what was shown before is refused', async () => {
    const world = open()
    const late = gate()
    const { id, revision } = await inReview(world, late.promise)
    late.open()
    await world.runtime.runUntil(async () => (await world.job(id)).revision !== revision)
    const seen = { ...ada, revision }
    expect(await codeOf(world.chokaq.reviews.adopt(id, { id: 'ch_1' }, seen))).toBe('CHOKAQ_NOT_POSSIBLE')
    expect(await codeOf(world.chokaq.reviews.retry(id, seen))).toBe('CHOKAQ_NOT_POSSIBLE')
    const now = { ...ada, revision: (await world.job(id)).revision }
    await world.chokaq.reviews.retry(id, now)
    await world.runtime.runUntil(async () => (await world.state(id)) === 'completed')
    expect(await world.job(id)).toMatchObject({ result: '{"chargeId":"ch_1"}' })
  })

  test('a result that was meant for an effect never becomes the job’s', async () => {
    const world = open()
    const late = gate()
    const { id, revision } = await inReview(world, late.promise)
    late.open()
    await world.runtime.runUntil(async () => (await world.job(id)).revision !== revision)
    const now = { ...ada, revision: (await world.job(id)).revision }
    const adopting = world.chokaq.reviews.adopt(id, { id: 'ch_1' }, now, { effect: { name: 'charge' } })
    expect(await codeOf(adopting)).toBe('CHOKAQ_NOT_POSSIBLE')
    expect(await world.state(id)).toBe('dead')
  })
})
