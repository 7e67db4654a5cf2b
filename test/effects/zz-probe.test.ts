import { defineHandler, ReviewNeeded, RetryAfter, type Handler } from 'chokaq/worker'
import { describe, expect, test } from 'vitest'
import { capture, capturing, resize, resizing } from '../engine/contracts.ts'
import { sqliteInMemory, storages, sharedStorages } from '../engine/storages.ts'
import { ada, codeOf, gate, worlds, type World } from '../engine/world.ts'
import { chargeOf, charging, providerOf, type ChargeInput } from './charging.ts'
import { keyless, type Charge } from './fake-provider.ts'

const pay = { paymentId: 'p1', amount: 5 }

describe.each(storages)('probe $name', (kind) => {
  const open = worlds(kind)

  test('A generation falls back to 1 after cancel', async () => {
    const world = open()
    const provider = providerOf(world)
    let how: 'fail' | 'wait' | 'ok' = 'fail'
    const handler = defineHandler(capture, {
      sideEffects: 'effects', effects: { charge: chargeOf(provider) }, whenInterrupted: 'resume', retry: { attempts: 1 },
      async run(p, ctx) {
        if (how === 'fail') throw new Error('not ready')
        const { id } = await ctx.effects.charge({ paymentId: p.paymentId, amount: p.amount })
        if (how === 'wait') throw new RetryAfter('1h')
        return { chargeId: id }
      },
    })
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([handler])
    expect(await world.state(id)).toBe('dead')
    how = 'wait'
    await world.chokaq.dlq.resurrect(id, { mode: 'new-operation' }, ada)
    await world.worker([handler]).tick()
    expect(await world.state(id)).toBe('scheduled')
    expect(provider.countOf('p1')).toBe(1)
    expect(await world.chokaq.jobs.cancel(id, ada)).toEqual({ kind: 'cancelled' })
    how = 'ok'
    await world.chokaq.enqueue(capture, pay)
    await world.drain([handler])
    expect(provider.countOf('p1')).toBe(1)
  })

  test('C compensation of one action with two done rows', async () => {
    const world = open()
    const provider = providerOf(world)
    const refunds: string[] = []
    const g = gate()
    let first = true
    const handler = defineHandler(capture, {
      sideEffects: 'effects',
      effects: { charge: chargeOf(provider, { async compensate(_i: ChargeInput, r: Charge) { refunds.push(r.id) } }) },
      whenInterrupted: 'resume', timeout: '1m', retry: { attempts: 3 },
      async run(p, ctx) {
        await ctx.effects.charge({ paymentId: p.paymentId, amount: p.amount })
        throw new ReviewNeeded('no')
      },
    })
    provider.acted = () => { if (first) { first = false; return g.promise } }
    const worker = await world.start([handler])
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.runtime.runUntil(async () => (await world.state(id)) === 'dead')
    g.open()
    await world.runtime.advance(1_000)
    const [review] = await world.chokaq.reviews.list()
    console.info((await world.chokaq.reviews.show(id))?.effects.map((e) => `${e.kind} ${e.state} ${e.providerKey}`))
    await world.chokaq.reviews.compensate(id, { ...ada, revision: review?.revision ?? 0 })
    await world.runtime.advance(10 * 60_000)
    expect(refunds).toEqual(['ch_1'])
    console.info(await world.job(id))
    expect(await world.state(id)).toBe('completed')
    await world.stop(worker)
  })

  test('D a child under a used key', async () => {
    const world = open()
    await world.chokaq.enqueue(capture, { paymentId: 'child', amount: 1 })
    const parent = resizing(async (_p, ctx) => { await ctx.enqueue(capture, { paymentId: 'child', amount: 2 }) })
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    await world.drain([parent])
    expect(await world.state(id)).not.toBe('completed')
  })

  test('E NUL in an item', async () => {
    const world = open()
    const provider = providerOf(world)
    const codes: string[] = []
    const handler = defineHandler(capture, {
      sideEffects: 'effects', effects: { charge: chargeOf(provider, { provider: keyless }) }, whenInterrupted: 'resume',
      retry: { attempts: 1 },
      async run(p, ctx) {
        const item = p.paymentId === 'bad' ? 'a\u0000b' : 'fine'
        codes.push(await codeOf(ctx.effects.charge({ paymentId: p.paymentId, amount: p.amount }, { item })))
        return { chargeId: 'x' }
      },
    })
    for (const paymentId of ['bad', 'p1', 'p2', 'p3']) await world.chokaq.enqueue(capture, { paymentId })
    await world.drain([handler])
    console.info(codes, (await world.chokaq.jobs.list('dlq')).jobs.map((j) => [j.keyPrefix, j.reason]))
    expect((await world.chokaq.jobs.list('archive')).jobs.length).toBeGreaterThanOrEqual(3)
  })
})

describe.each(sharedStorages)('probe2 $name', (kind) => {
  const open = worlds(kind)
  test('B a late outcome makes adopt complete the job', async () => {
    const world = open()
    const provider = providerOf(world, false)
    const g = gate()
    const own = world.process(7_777)
    let rest = 0
    const handler: Handler = defineHandler(capture, {
      sideEffects: 'effects', effects: { charge: chargeOf(provider, { provider: keyless }) }, whenInterrupted: 'resume',
      timeout: '1m',
      async run(p, ctx) {
        const { id } = await ctx.effects.charge({ paymentId: p.paymentId, amount: p.amount })
        rest += 1
        return { chargeId: id }
      },
    })
    void own
    provider.acted = () => g.promise
    const worker = await world.start([handler])
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.runtime.runUntil(async () => (await world.state(id)) === 'dead')
    const [review] = await world.chokaq.reviews.list()
    expect(review?.effect).toBe('charge')
    g.open()
    await world.runtime.advance(1_000)
    console.info((await world.chokaq.reviews.show(id))?.effects.map((e) => `${e.kind} ${e.state}`))
    const said = await codeOf(world.chokaq.reviews.adopt(id, { id: 'ch_1' }, { ...ada, revision: review?.revision ?? 0 }, { effect: { name: 'charge' } }))
    console.info(said, await world.job(id))
    await world.runtime.advance(60_000)
    expect(rest).toBe(1)
    await world.stop(worker)
  })
})
