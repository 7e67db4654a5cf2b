// Effects end to end: what is finished is never repeated, and what is in doubt is repeated under its key, asked for, or
// left to a person.
import type { JobRecord } from 'chokaq'
import { defineHandler, defineProvider, EffectDeclined, ReviewNeeded } from 'chokaq/worker'
import { describe, expect, test } from 'vitest'
import { capture } from '../engine/contracts.ts'
import { sharedStorages, storages } from '../engine/storages.ts'
import { ada, codeOf, worlds, type World } from '../engine/world.ts'
import { chargeOf, charging, crashInCall, providerOf } from './charging.ts'
import { acme, keyless } from './fake-provider.ts'

const pay = { paymentId: 'p1', amount: 5 }
const minute = 60_000
const hour = 60 * minute

async function ended(world: World, id: string): Promise<JobRecord> {
  await world.runtime.runUntil(async () => ['completed', 'dead'].includes(await world.state(id)), {
    limitMs: 48 * hour,
  })
  return world.job(id)
}

describe.each(storages)('effects on $name', (kind) => {
  const open = worlds(kind)

  test('an effect acts once, and its result is the job’s', async () => {
    const world = open()
    const provider = providerOf(world)
    const { id } = await world.chokaq.enqueue(capture, pay)
    expect(await world.drain([charging(provider)])).toBe(1)
    expect(await world.job(id)).toMatchObject({ state: 'completed', result: '{"chargeId":"ch_1"}' })
    expect(provider.acts).toHaveLength(1)
    expect(await world.chokaq.enqueue(capture, pay)).toMatchObject({ outcome: 'already-completed' })
  })

  test('E31 a handler that fails after its effect goes on behind it', async () => {
    const world = open()
    const provider = providerOf(world, false)
    let failures = 0
    const after = () => {
      failures += 1
      if (failures < 4) throw new Error('later')
    }
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([charging(provider, { provider: keyless }, { after })])
    expect(await world.job(id)).toMatchObject({ state: 'completed', failureCount: 3 })
    expect(provider.calls).toHaveLength(1)
    expect(world.of('effect.outcome').map(({ outcome }) => outcome)).toEqual([
      'done',
      'replayed',
      'replayed',
      'replayed',
    ])
  })

  test('E12 after MaxRetriesExceeded with a finished effect a new job of the key never repeats it', async () => {
    const world = open()
    const provider = providerOf(world, false)
    let isBroken = true
    const after = () => {
      if (isBroken) throw new Error('later')
    }
    const handler = charging(provider, { provider: keyless }, { after, retry: { attempts: 2 } })
    const first = await world.chokaq.enqueue(capture, pay)
    await world.drain([handler])
    expect(await world.job(first.id)).toMatchObject({ state: 'dead', reason: 'MaxRetriesExceeded', inDoubt: false })
    isBroken = false
    const second = await world.chokaq.enqueue(capture, pay)
    expect(second.outcome).toBe('enqueued')
    await world.drain([handler])
    expect(await world.job(second.id)).toMatchObject({ state: 'completed', result: '{"chargeId":"ch_1"}' })
    expect(provider.calls).toHaveLength(1)
  })

  test('E26 an error that proves that nothing happened is simply tried again', async () => {
    const world = open()
    const provider = providerOf(world, false)
    let calls = 0
    provider.mishap = () => ((calls += 1) < 3 ? 'refuse' : 'none')
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([charging(provider, { provider: keyless })])
    expect(await world.state(id)).toBe('completed')
    expect([provider.calls.length, provider.acts.length]).toEqual([3, 1])
  })

  test('E26 a lost answer is asked for under the same key', async () => {
    const world = open()
    const provider = providerOf(world)
    provider.mishap = () => (provider.calls.length === 1 ? 'lose-answer' : 'none')
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([charging(provider)])
    expect(await world.job(id)).toMatchObject({ state: 'completed', result: '{"chargeId":"ch_1"}' })
    expect([provider.calls.length, provider.acts.length]).toEqual([2, 1])
  })

  test('E26 a lost answer of a provider without keys and without reconcile waits for a person', async () => {
    const world = open()
    const provider = providerOf(world, false)
    provider.mishap = () => 'lose-answer'
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([charging(provider, { provider: keyless })])
    expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'InDoubt', inDoubt: true })
    expect(provider.calls).toHaveLength(1)
    expect(await world.chokaq.enqueue(capture, pay)).toMatchObject({ outcome: 'already-in-review' })
  })

  test('E25 E13 an absence is believed after settleAfter, not before', async () => {
    const world = open()
    const provider = providerOf(world, false)
    provider.lagMs = 10 * minute
    provider.mishap = () => (provider.calls.length === 1 ? 'lose-answer' : 'none')
    const of = {
      provider: keyless,
      reconcile: (input: { paymentId: string }) => provider.look(input.paymentId),
      settleAfter: '15m',
    } as const
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([charging(provider, of)])
    expect(await world.job(id)).toMatchObject({ state: 'completed', result: '{"chargeId":"ch_1"}', failureCount: 1 })
    expect(provider.calls).toHaveLength(1)
    expect(world.of('effect.outcome').map(({ outcome }) => outcome)).toEqual(['ambiguous', 'waiting', 'reconciled'])
    expect(world.runtime.clock.monotonicMs()).toBeGreaterThanOrEqual(15 * minute)
  })

  test('E25 what reconcile does not know for long waits for a person', async () => {
    const world = open()
    const provider = providerOf(world, false)
    provider.mishap = () => 'lose-answer'
    const of = { provider: keyless, reconcile: async () => 'unknown' as const, reconcileFor: '30m' } as const
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([charging(provider, of)])
    expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'InDoubt', failureCount: 2 })
    expect(world.runtime.clock.monotonicMs()).toBeGreaterThan(30 * minute)
    expect(provider.calls).toHaveLength(1)
  })

  test('E27 a stored 500 is not asked for for ever: a fresh key after reconcile said absent', async () => {
    const world = open()
    const provider = providerOf(world)
    provider.mishap = () => (provider.calls.length === 1 ? 'server-error' : 'none')
    const reconcile = (input: { paymentId: string }) => provider.look(input.paymentId)
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([charging(provider, { reconcile })])
    expect(await world.job(id)).toMatchObject({ state: 'completed', result: '{"chargeId":"ch_1"}' })
    const keys = provider.calls.map(({ key }) => key)
    expect([keys.length, new Set(keys).size, provider.acts.length]).toEqual([3, 2, 1])
  })

  test('E27 a stored 500 without reconcile waits for a person', async () => {
    const world = open()
    const provider = providerOf(world)
    provider.mishap = () => (provider.calls.length === 1 ? 'server-error' : 'none')
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([charging(provider)])
    expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'InDoubt' })
    expect([provider.calls.length, provider.acts.length]).toEqual([2, 0])
  })

  test('E29 a decline is final: recorded, replayed, and what duplicates are told', async () => {
    const world = open()
    const provider = providerOf(world)
    provider.mishap = () => 'decline'
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([charging(provider)])
    expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'FatalError', inDoubt: false, attempt: 1 })
    const answer = await world.chokaq.enqueue(capture, pay)
    expect(answer).toMatchObject({ outcome: 'already-failed', id, error: { message: 'card declined' } })
    expect(provider.calls).toHaveLength(1)
  })

  test('E29 a decline that the handler deals with is the same on every attempt', async () => {
    const world = open()
    const provider = providerOf(world)
    provider.mishap = () => 'decline'
    let attempts = 0
    const handler = defineHandler(capture, {
      sideEffects: 'effects',
      effects: { charge: chargeOf(provider) },
      whenInterrupted: 'resume',
      async run(p, ctx) {
        const declined = await ctx.effects.charge(p).catch((error: unknown) => error)
        expect(declined).toBeInstanceOf(EffectDeclined)
        attempts += 1
        if (attempts < 3) throw new Error('later')
        return { chargeId: 'none' }
      },
    })
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([handler])
    expect(await world.state(id)).toBe('completed')
    expect(provider.calls).toHaveLength(1)
  })

  test('E32 an error in doubt that the handler swallows does not complete the job', async () => {
    const world = open()
    const provider = providerOf(world)
    provider.mishap = () => 'lose-answer'
    const handler = defineHandler(capture, {
      sideEffects: 'effects',
      effects: { charge: chargeOf(provider) },
      whenInterrupted: 'resume',
      async run(p, ctx) {
        await ctx.effects.charge(p).catch(() => 'swallowed')
        return { chargeId: 'unknown' }
      },
    })
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([handler])
    expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'InDoubt', inDoubt: true })
  })

  test('a handler asks for a person, with its reason', async () => {
    const world = open()
    const handler = charging(
      providerOf(world),
      {},
      {
        after: () => {
          throw new ReviewNeeded('amount looks wrong', { amount: 5 })
        },
      },
    )
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([handler])
    expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'ReviewRequested', inDoubt: true })
    expect(await world.chokaq.reviews.list()).toMatchObject([{ id, message: 'amount looks wrong' }])
  })

  test('E14 a retry with another input than recorded waits for a person', async () => {
    const world = open()
    const provider = providerOf(world)
    provider.mishap = () => 'lose-answer'
    let attempt = 0
    const handler = defineHandler(capture, {
      sideEffects: 'effects',
      effects: { charge: chargeOf(provider) },
      whenInterrupted: 'resume',
      async run(p, ctx) {
        attempt += 1
        const { id } = await ctx.effects.charge({ paymentId: p.paymentId, amount: attempt })
        return { chargeId: id }
      },
    })
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.drain([handler])
    const job = await world.job(id)
    expect(job).toMatchObject({ state: 'dead', reason: 'InDoubt', failure: { code: 'CHOKAQ_EFFECT_INPUT_CHANGED' } })
    expect(provider.calls).toHaveLength(1)
  })

  test('E48 a deploy that renames a recorded effect stops the next attempt and every new job of the key', async () => {
    const world = open()
    const provider = providerOf(world)
    const broken = charging(provider, {}, { retry: { attempts: 1 }, after: () => Promise.reject(new Error('later')) })
    await world.chokaq.enqueue(capture, pay)
    await world.drain([broken])
    const second = await world.chokaq.enqueue(capture, pay)
    await world.drain([charging(provider, { name: 'pay' })])
    expect(await world.job(second.id)).toMatchObject({
      state: 'dead',
      reason: 'InDoubt',
      failure: { code: 'CHOKAQ_EFFECT_ORPHANED' },
    })
    expect(provider.calls).toHaveLength(1)
  })

  test('E6 a cancel that comes while an effect is in doubt ends in review, not in the archive', async () => {
    const world = open()
    const provider = providerOf(world)
    provider.mishap = () => 'lose-answer'
    const { id } = await world.chokaq.enqueue(capture, pay)
    await world.worker([charging(provider)]).tick()
    expect(await world.state(id)).toBe('scheduled')
    expect(await world.chokaq.jobs.cancel(id, ada)).toEqual({ kind: 'finished', state: 'dead' })
    expect(await world.job(id)).toMatchObject({ reason: 'InDoubt', inDoubt: true })
  })
})

describe.each(sharedStorages)('crashes in effects on $name', (kind) => {
  const open = worlds(kind)

  test('E24 after the provider acted: the key gives the same charge', async () => {
    const world = open()
    const provider = providerOf(world)
    const handlers = [charging(provider)]
    const { id } = await world.chokaq.enqueue(capture, pay)
    await crashInCall(world, provider, handlers, { isSeen: true })
    await world.start(handlers)
    expect(await ended(world, id)).toMatchObject({ state: 'completed', result: '{"chargeId":"ch_1"}' })
    expect([provider.calls.length, provider.acts.length]).toEqual([2, 1])
  })

  test('E23 before the call arrived, no key, its process gone: absent is believed and it acts once', async () => {
    const world = open()
    const provider = providerOf(world, false)
    const reconcile = (input: { paymentId: string }) => provider.look(input.paymentId)
    const handlers = [charging(provider, { provider: keyless, reconcile })]
    const { id } = await world.chokaq.enqueue(capture, pay)
    await crashInCall(world, provider, handlers, { isSeen: true, before: true })
    await world.start(handlers)
    expect(await ended(world, id)).toMatchObject({ state: 'completed' })
    expect(provider.acts).toHaveLength(1)
  })

  test('E5 before the call arrived, no key, its worker only silent: a late call may come, so a person decides', async () => {
    const world = open()
    const provider = providerOf(world, false)
    const reconcile = (input: { paymentId: string }) => provider.look(input.paymentId)
    const handlers = [charging(provider, { provider: keyless, reconcile })]
    const { id } = await world.chokaq.enqueue(capture, pay)
    await crashInCall(world, provider, handlers, { isSeen: false, before: true })
    await world.start(handlers)
    const job = await ended(world, id)
    expect(job).toMatchObject({ state: 'dead', reason: 'InDoubt' })
    expect(job.failure?.message).toContain('not proven dead')
    expect(provider.acts).toHaveLength(0)
    expect(await world.chokaq.reviews.list()).toMatchObject([{ id, effect: 'charge', ownerGone: false }])
  })

  test('E13 longer ago than the provider remembers: never repeated blindly', async () => {
    for (const reconciles of [false, true]) {
      const world = open()
      const provider = providerOf(world)
      const brief = defineProvider({ ...briefly, name: 'brief' })
      const reconcile = (input: { paymentId: string }) => provider.look(input.paymentId)
      const handlers = [charging(provider, { provider: brief, ...(reconciles ? { reconcile } : {}) })]
      const { id } = await world.chokaq.enqueue(capture, pay)
      await crashInCall(world, provider, handlers, { isSeen: true })
      await world.runtime.advance(15 * minute)
      await world.start(handlers)
      const job = await ended(world, id)
      if (reconciles) expect(job).toMatchObject({ state: 'completed', result: '{"chargeId":"ch_1"}' })
      else expect(job).toMatchObject({ state: 'dead', reason: 'InDoubt' })
      expect(provider.calls).toHaveLength(1)
    }
  })

  test('an effect costs at most one durable write before each call', async () => {
    const world = open()
    const provider = providerOf(world)
    const handler = mailing(provider, 100)
    await world.chokaq.enqueue(capture, pay)
    let ledgerCalls = 0
    world.fault = (call) => {
      if (call === 'ledger') ledgerCalls += 1
      return 'none'
    }
    await world.drain([handler])
    expect(provider.acts).toHaveLength(100)
    // One intent each, which takes the outcome of the call before along; and the last outcome.
    expect(ledgerCalls).toBe(101)
  })

  test('E22 a loop of 500 mails whose worker dies at 237 resumes there', async () => {
    for (const takesKeys of [true, false]) {
      const world = open()
      const provider = providerOf(world, takesKeys)
      const handlers = [mailing(provider, 500, takesKeys)]
      const { id } = await world.chokaq.enqueue(capture, pay)
      await crashInCall(world, provider, handlers, { isSeen: true, at: (what) => what === '237' })
      await world.start(handlers)
      expect(await ended(world, id)).toMatchObject({ state: 'completed', attempt: 2 })
      expect(provider.acts.map(({ what }) => what)).toEqual(Array.from({ length: 500 }, (_, index) => String(index)))
      // 0 to 236 were known, 237 was asked for again or found, the rest came after.
      expect(provider.calls.length).toBe(takesKeys ? 501 : 500)
    }
  }, 120_000)

  test('codes of refused declarations reach the caller', async () => {
    expect(await codeOf(Promise.resolve().then(() => chargeOf(providerOf(open()), { name: '' })))).toBe(
      'CHOKAQ_EFFECT_INVALID',
    )
  })
})

const briefly = { keyFormat: { maxLength: 64 }, dedupeWindow: '10m', onProviderError: 'reexecuted' } as const

function mailing(provider: ReturnType<typeof providerOf>, count: number, takesKeys = true) {
  const mail = chargeOf(provider, {
    name: 'mail',
    provider: takesKeys ? acme : keyless,
    reconcile: (input) => provider.look(input.paymentId),
  })
  return defineHandler(capture, {
    sideEffects: 'effects',
    effects: { mail },
    whenInterrupted: 'resume',
    async run(p, ctx) {
      for (let index = 0; index < count; index += 1) {
        const item = String(index)
        await ctx.effects.mail({ paymentId: item, amount: p.amount }, { item })
      }
      return { chargeId: 'all' }
    },
  })
}
