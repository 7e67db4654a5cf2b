// What a person decides: the list, the four decisions, and everything that can come between.
import { defineHandler, ReviewNeeded, type Handler } from 'chokaq/worker'
import { describe, expect, test } from 'vitest'
import { capture, unguarded } from '../engine/contracts.ts'
import { sharedStorages, storages } from '../engine/storages.ts'
import { ada, codeOf, worlds, type World } from '../engine/world.ts'
import { chargeOf, charging, crashInCall, providerOf, type ChargeInput } from './charging.ts'
import { keyless, type Charge, type FakeProvider } from './fake-provider.ts'

const pay = { paymentId: 'p1', amount: 5 }
const bob = { actor: 'bob', note: 'the bank says so' }

/** A charge whose answer was lost, by a provider that cannot tell. Undone by `refunds`. */
function doubtful(provider: FakeProvider, refunds: string[] = [], undo?: () => unknown): Handler {
  return charging(provider, {
    provider: keyless,
    async compensate(_input: ChargeInput, result: Charge) {
      await undo?.()
      refunds.push(result.id)
    },
  })
}

async function inReview(world: World, handler: Handler, provider: FakeProvider) {
  provider.mishap = () => (provider.calls.length === 1 ? 'lose-answer' : 'none')
  await world.chokaq.enqueue(capture, pay)
  await world.drain([handler])
  return onlyReview(world)
}

async function onlyReview(world: World) {
  const [review, ...others] = await world.chokaq.reviews.list()
  expect(others).toEqual([])
  if (review === undefined) throw new Error('nothing is in review')
  return review
}

describe.each(storages)('reviews on $name', (kind) => {
  const open = worlds(kind)

  test('the list shows what is known, and the record all calls', async () => {
    const world = open()
    const provider = providerOf(world, false)
    const startedAt = world.runtime.clock.nowMs()
    const review = await inReview(world, doubtful(provider), provider)
    expect(review).toMatchObject({
      type: 'payment.capture.v1',
      queue: 'default',
      reason: 'InDoubt',
      effect: 'charge',
      attempts: 2,
      crashes: 0,
      ownerGone: true,
    })
    expect(review.key).toContain('p1')
    expect(review.message).toContain('post office takes no keys')
    expect(review.intentAt?.getTime()).toBe(startedAt)
    const shown = await world.chokaq.reviews.show(review.id)
    expect(shown?.effects).toMatchObject([
      { name: 'charge', state: 'ambiguous', input: expect.stringContaining('p1') as string },
    ])
    expect(await world.chokaq.reviews.list({ type: 'other.v1' })).toEqual([])
  })

  test('adopt: the handler goes on with the given result, and nothing is called again', async () => {
    const world = open()
    const provider = providerOf(world, false)
    const handler = doubtful(provider)
    const review = await inReview(world, handler, provider)
    expect(await world.chokaq.reviews.adopt(review.id, { id: 'ch_1' }, { ...bob, revision: review.revision })).toEqual({
      outcome: 'resolved',
    })
    await world.drain([handler])
    expect(await world.job(review.id)).toMatchObject({ state: 'completed', result: '{"chargeId":"ch_1"}' })
    expect(provider.calls).toHaveLength(1)
    expect(await world.chokaq.enqueue(capture, pay)).toMatchObject({ outcome: 'already-completed' })
  })

  test('retry: it did not happen, so it is called again', async () => {
    const world = open()
    const provider = providerOf(world, false)
    provider.acted = () => undefined
    const handler = doubtful(provider)
    const review = await inReview(world, handler, provider)
    await world.chokaq.reviews.retry(review.id, { ...bob, revision: review.revision })
    await world.drain([handler])
    expect(await world.state(review.id)).toBe('completed')
    expect(provider.calls).toHaveLength(2)
  })

  test('abandon: duplicates are answered already-failed', async () => {
    const world = open()
    const provider = providerOf(world, false)
    const review = await inReview(world, doubtful(provider), provider)
    await world.chokaq.reviews.abandon(review.id, { ...bob, revision: review.revision })
    expect(await world.state(review.id)).toBe('cancelled')
    expect(await world.chokaq.enqueue(capture, pay)).toMatchObject({
      outcome: 'already-failed',
      error: { message: 'Abandoned by bob: the bank says so' },
    })
  })

  test('compensate waits until it is known what happened; then the worker undoes it', async () => {
    const world = open()
    const provider = providerOf(world, false)
    const refunds: string[] = []
    const handler = doubtful(provider, refunds)
    const review = await inReview(world, handler, provider)
    const by = { ...bob, revision: review.revision }
    expect(await codeOf(world.chokaq.reviews.compensate(review.id, by))).toBe('CHOKAQ_NOT_POSSIBLE')
    await world.chokaq.reviews.adopt(review.id, { id: 'ch_1' }, by)
    expect(refunds).toEqual([])
  })

  test('E53 a late duplicate after compensation never charges again', async () => {
    const world = open()
    const provider = providerOf(world, false)
    const refunds: string[] = []
    const handler = compensable(provider, refunds)
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([handler])
    const review = await onlyReview(world)
    await world.chokaq.reviews.compensate(id, { ...bob, revision: review.revision })
    await world.drain([handler])
    expect(refunds).toEqual(['ch_1'])
    expect(await world.job(id)).toMatchObject({ state: 'completed', result: null })
    expect(await world.chokaq.enqueue(capture, pay)).toMatchObject({ outcome: 'already-compensated', id })
    await world.drain([handler])
    expect(provider.calls).toHaveLength(1)
  })

  test('an undoing that fails is tried again, and parks in the end; its key stays held', async () => {
    const world = open()
    const provider = providerOf(world, false)
    const refunds: string[] = []
    let failures = 0
    const undo = () => {
      failures += 1
      throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    }
    const handler = compensable(provider, refunds, undo)
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([handler])
    await world.chokaq.reviews.compensate(id, { ...bob, revision: (await onlyReview(world)).revision })
    await world.drain([handler])
    expect(failures).toBe(3)
    expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'MaxRetriesExceeded', inDoubt: true })
    expect(await world.chokaq.enqueue(capture, pay)).toMatchObject({ outcome: 'already-in-review' })
    // The wish stands: once the provider is back, a retry goes on undoing.
    await world.chokaq.reviews.retry(id, { ...bob, revision: (await onlyReview(world)).revision })
    await world.drain([compensable(provider, refunds)])
    expect(refunds).toEqual(['ch_1'])
    expect(await world.chokaq.enqueue(capture, pay)).toMatchObject({ outcome: 'already-compensated' })
  })

  test('an effect without compensate cannot be undone, and says so', async () => {
    const world = open()
    const provider = providerOf(world, false)
    const other = defineHandler(capture, {
      sideEffects: 'effects',
      effects: { charge: chargeOf(provider, { provider: keyless }) },
      whenInterrupted: 'review',
      async run(p, ctx) {
        await ctx.effects.charge({ paymentId: p.paymentId, amount: p.amount })
        throw new Error('later')
      },
    })
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([other])
    await world.chokaq.reviews.compensate(id, { ...bob, revision: (await onlyReview(world)).revision })
    await world.drain([other])
    expect((await onlyReview(world)).message).toContain('declares no compensate')
  })

  test('E49 of two operators one decides, and the other is told', async () => {
    const world = open()
    const provider = providerOf(world, false)
    const review = await inReview(world, doubtful(provider), provider)
    const { revision } = review
    const both = await world.runtime.complete(
      Promise.all([
        world.chokaq.reviews.abandon(review.id, { ...ada, revision }),
        world.chokaq.reviews.adopt(review.id, { id: 'ch_1' }, { ...bob, revision }),
      ]),
    )
    expect(both.filter(({ outcome }) => outcome === 'resolved')).toHaveLength(1)
    const [first] = (await world.chokaq.insight.audit()).filter(({ act }) => act === 'resolve')
    const late = both.find(({ outcome }) => outcome === 'already-resolved')
    expect(late).toMatchObject({ by: first?.actor })
    // A second click of the first one, too.
    expect(await world.chokaq.reviews.abandon(review.id, { ...ada, revision })).toMatchObject({
      outcome: 'already-resolved',
    })
  })

  test('a decision on what has changed since is refused, with the revision of now', async () => {
    const world = open()
    const provider = providerOf(world, false)
    const review = await inReview(world, doubtful(provider), provider)
    const refusal: unknown = await world.chokaq.reviews
      .retry(review.id, { ...ada, revision: review.revision - 1 })
      .catch((error: unknown) => error)
    expect(refusal).toMatchObject({ code: 'CHOKAQ_NOT_POSSIBLE' })
    expect((refusal as Error).message).toContain(`at revision ${review.revision} by now`)
  })

  test('the whole handler in doubt: adopt completes the job, retry runs it again', async () => {
    const world = open()
    let runs = 0
    const handler = unguarded(async () => {
      runs += 1
      if (runs < 3) throw new Error('how far did it come?')
      return { chargeId: 'ch_9' }
    })
    const first = await world.chokaq.enqueue(capture, pay)
    await world.drain([handler])
    const review = await onlyReview(world)
    expect(review).toMatchObject({ reason: 'Interrupted', message: 'how far did it come?' })
    expect(review).not.toHaveProperty('effect')
    await world.chokaq.reviews.adopt(review.id, { chargeId: 'ch_1' }, { ...ada, revision: review.revision })
    expect(await world.job(first.id)).toMatchObject({ state: 'completed', result: '{"chargeId":"ch_1"}' })
    const second = await world.chokaq.enqueue(capture, { ...pay, paymentId: 'p2' })
    await world.drain([handler])
    await world.chokaq.reviews.retry(second.id, { ...ada, revision: (await onlyReview(world)).revision })
    await world.drain([handler])
    expect(await world.job(second.id)).toMatchObject({ state: 'completed', result: '{"chargeId":"ch_9"}' })
    expect(runs).toBe(3)
  })

  test('E47 a dead job is continued behind its finished effects, or begun anew with other keys', async () => {
    const world = open()
    const provider = providerOf(world)
    let isBroken = true
    const after = () => {
      if (isBroken) throw new Error('later')
    }
    const handler = charging(provider, {}, { after, retry: { attempts: 1 } })
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([handler])
    isBroken = false
    await world.chokaq.dlq.resurrect(id, { mode: 'continue' }, ada)
    await world.drain([handler])
    expect(await world.state(id)).toBe('completed')
    expect(provider.calls).toHaveLength(1)
    isBroken = true
    const other = await world.chokaq.enqueue(capture, { ...pay, paymentId: 'p2' })
    await world.drain([handler])
    isBroken = false
    await world.chokaq.dlq.resurrect(other.id, { mode: 'new-operation' }, ada)
    await world.drain([handler])
    expect(await world.state(other.id)).toBe('completed')
    expect(new Set(provider.calls.map(({ key }) => key)).size).toBe(3)
    expect(provider.countOf('p2')).toBe(2)
  })
})

describe.each(sharedStorages)('compensation that crashes on $name', (kind) => {
  const open = worlds(kind)

  test('E54 it is resumed, and undoes once', async () => {
    const world = open()
    const provider = providerOf(world)
    const refund = (input: ChargeInput, options: { idempotencyKey: string; signal: AbortSignal }) =>
      provider.act(`refund ${input.paymentId}`, options).then(() => undefined)
    const parked = [reviewing(provider, refund)]
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain(parked)
    await world.chokaq.reviews.compensate(id, { ...bob, revision: (await onlyReview(world)).revision })
    await crashInCall(world, provider, parked, { isSeen: true, at: (what) => what.startsWith('refund') })
    await world.start(parked)
    await world.runtime.runUntil(async () => (await world.state(id)) === 'completed')
    expect([provider.countOf('p1'), provider.countOf('refund p1')]).toEqual([1, 1])
    expect(provider.calls.filter(({ what }) => what === 'refund p1')).toHaveLength(2)
    expect(await world.chokaq.enqueue(capture, pay)).toMatchObject({ outcome: 'already-compensated' })
  })
})

/** Charges, and then has to be looked at. */
function reviewing(
  provider: FakeProvider,
  refund: (input: ChargeInput, options: { idempotencyKey: string; signal: AbortSignal }) => Promise<void>,
): Handler {
  return defineHandler(capture, {
    sideEffects: 'effects',
    effects: { charge: chargeOf(provider, { compensate: (input, _result, options) => refund(input, options) }) },
    whenInterrupted: 'resume',
    async run(p, ctx) {
      await ctx.effects.charge({ paymentId: p.paymentId, amount: p.amount })
      throw new ReviewNeeded('this charge must not stand')
    },
  })
}

/** The same without keys; its undoing may fail. */
function compensable(provider: FakeProvider, refunds: string[], undo?: () => unknown): Handler {
  const charge = chargeOf(provider, {
    provider: keyless,
    async compensate(_input, result) {
      await undo?.()
      refunds.push(result.id)
    },
  })
  return defineHandler(capture, {
    sideEffects: 'effects',
    effects: { charge },
    whenInterrupted: 'resume',
    retry: { attempts: 3 },
    async run(p, ctx) {
      await ctx.effects.charge({ paymentId: p.paymentId, amount: p.amount })
      throw new ReviewNeeded('this charge must not stand')
    },
  })
}
