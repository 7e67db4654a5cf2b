import { describe, expect, it } from 'vitest'
import { EffectDeclined, NotExecuted } from '../../core/control-flow.ts'
import type { EffectDefinition } from '../../core/effect.ts'
import { ChokaQError } from '../../core/errors.ts'
import type { AttemptEnd } from '../../core/outcome.ts'
import { defineProvider } from '../../core/provider.ts'
import { calls, effect, EffectScene, failing, keyless, refusalOf, reset, returned } from '../../testing/effect-scene.ts'

type Definition = Partial<EffectDefinition<unknown, unknown>>

const serverError = Object.assign(new Error('500 from acme'), { status: 500 })

describe('errors of an effect', () => {
  it('that prove nothing leave it in doubt; the next attempt repeats it under the same key', async () => {
    const scene = new EffectScene({ charge: failing(reset) })
    await expect(scene.call('charge')).rejects.toBe(reset)
    expect(scene.ledger.states('charge')).toEqual(['ambiguous'])
    const again = scene.next({ charge: effect() })
    expect(await again.call('charge')).toEqual({ id: 'charge-1' })
    expect(calls[0]?.key).toBe(scene.ledger.rows[0]?.providerKey)
    expect(scene.ledger.states('charge')).toEqual(['superseded', 'done'])
  })

  it('that prove that nothing happened leave it to be called again', async () => {
    const proof = new NotExecuted('sold out')
    const scene = new EffectScene({ charge: failing(proof, { provider: keyless }) })
    await expect(scene.call('charge')).rejects.toBe(proof)
    expect(scene.ledger.states('charge')).toEqual(['not-executed'])
    await scene.next({ charge: effect({ provider: keyless }) }).call('charge')
    expect(calls).toHaveLength(1)
  })

  it('E29 that are final are recorded and thrown again, without a call', async () => {
    const stripeLike = defineProvider({
      name: 'acme',
      keyFormat: { maxLength: 64 },
      dedupeWindow: '24h',
      onProviderError: 'replayed',
      classify: () => 'terminal',
    })
    const of = { charge: failing(new Error('card declined'), { provider: stripeLike }) }
    const scene = new EffectScene(of)
    for (const each of [scene, scene.next(of)]) {
      const thrown: unknown = await each.call('charge').catch((error: unknown) => error)
      expect(thrown).toBeInstanceOf(EffectDeclined)
      expect(thrown).toMatchObject({ effect: 'charge', message: 'card declined' })
    }
    expect(calls).toHaveLength(1)
    expect(scene.ledger.states('charge')).toEqual(['terminal'])
  })

  it('E27 that the provider stores and replays are seen for that, and the key rotates only after absent', async () => {
    const of = { charge: failing(serverError) }
    const scene = new EffectScene(of)
    await scene.call('charge').catch(() => undefined)
    await scene
      .next(of)
      .call('charge')
      .catch(() => undefined)
    expect(scene.ledger.rows.map(({ replayed }) => replayed)).toEqual([false, true])
    // No reconcile: a person.
    const parked = scene.next({ charge: effect() }, 3)
    expect((await refusalOf(parked.call('charge'))).code).toBe('CHOKAQ_EFFECT_IN_DOUBT')
    // Absent, old enough: a fresh key.
    scene.ledger.nowMs += 3_600_000
    const asked = scene.next({ charge: effect({ reconcile: async () => 'absent' }) }, 4)
    await asked.call('charge')
    expect(calls).toHaveLength(1)
    expect(calls[0]?.key).not.toBe(scene.ledger.rows[0]?.providerKey)
    expect(scene.ledger.states('charge')).toEqual(['not-executed', 'not-executed', 'done'])
  })

  it('E28 an answer that the same key is at work does not rotate it', async () => {
    const busy = { charge: failing(Object.assign(new Error('in use'), { status: 409 })) }
    const scene = new EffectScene(busy)
    await scene.call('charge').catch(() => undefined)
    await scene
      .next(busy)
      .call('charge')
      .catch(() => undefined)
    expect(new Set(scene.ledger.rows.map(({ providerKey }) => providerKey)).size).toBe(1)
    expect(scene.ledger.rows.map(({ replayed }) => replayed)).toEqual([false, false])
  })

  it('E32 that ask for a person stand, whatever the handler makes of them', async () => {
    const scene = new EffectScene({ charge: failing(reset, { provider: keyless }) })
    await scene.call('charge').catch(() => undefined)
    const again = scene.next({ charge: effect({ provider: keyless }) })
    await again.call('charge').catch(() => 'swallowed')
    for (const end of [returned, { kind: 'threw', thrown: new Error('other') }] as const) {
      expect(await again.finish(end)).toMatchObject({ kind: 'parked', failure: { code: 'CHOKAQ_EFFECT_IN_DOUBT' } })
    }
    expect(calls).toEqual([])
  })

  it('a storage that refuses the intent keeps the call from being made', async () => {
    const scene = new EffectScene({ charge: effect() })
    scene.ledger.before = ({ kind }) => {
      if (kind === 'open') throw new ChokaQError('CHOKAQ_STORAGE_FAILED', { problem: 'away' })
    }
    expect((await refusalOf(scene.call('charge'))).code).toBe('CHOKAQ_STORAGE_FAILED')
    expect(calls).toEqual([])
  })

  it('E42 a storage that refuses the outcome leaves the truth: in doubt', async () => {
    const scene = new EffectScene({ charge: effect() })
    scene.ledger.before = ({ kind }) => {
      if (kind === 'close') throw new ChokaQError('CHOKAQ_STORAGE_FAILED', { problem: 'away' })
    }
    expect(await scene.call('charge')).toEqual({ id: 'charge-1' })
    await scene.finish(returned)
    expect(scene.ledger.states('charge')).toEqual(['open'])
  })
})

describe('reconcile', () => {
  const doubtful = async (change: Definition) => {
    const scene = new EffectScene({ charge: failing(reset, { provider: keyless, ...change }) })
    await scene.call('charge').catch(() => undefined)
    return scene
  }

  it('E24 adopts what it finds, without a call', async () => {
    const of = { provider: keyless, reconcile: async () => ({ present: { id: 'found' } }) }
    const scene = await doubtful(of)
    const again = scene.next({ charge: effect(of) })
    expect(await again.call('charge')).toEqual({ id: 'found' })
    expect(calls).toEqual([])
    expect(again.outcomes).toEqual(['charge reconciled'])
    expect(await scene.next({ charge: effect(of) }, 3).call('charge')).toEqual({ id: 'found' })
  })

  it('adopts nothing for an attempt that lost its job while it was asked', async () => {
    const scene = await doubtful({ provider: keyless })
    const of = (lose: () => void): Definition => ({
      provider: keyless,
      reconcile: async () => {
        lose()
        return { present: { id: 'found' } }
      },
    })
    const paused: EffectScene = scene.next({ charge: effect(of(() => void (paused.confirmed = false))) })
    expect((await refusalOf(paused.call('charge'))).code).toBe('CHOKAQ_LEASE_LOST')
    const gone = new ChokaQError('CHOKAQ_CTX_REVOKED', { jobId: 'j', call: 'effects.charge' })
    const revoke = (): never => {
      throw gone
    }
    const revoked: EffectScene = scene.next({ charge: effect(of(() => void (revoked.check = revoke))) }, 3)
    expect(await refusalOf(revoked.call('charge'))).toBe(gone)
    expect(scene.ledger.states('charge')).toEqual(['ambiguous'])
  })

  it('E25 waits where it says absent too early, and acts once that can be believed', async () => {
    const of = { provider: keyless, reconcile: async () => 'absent' as const, settleAfter: '1m' as const }
    const scene = await doubtful(of)
    scene.ledger.nowMs += 20_000
    const early = scene.next({ charge: effect(of) })
    expect((await refusalOf(early.call('charge'))).code).toBe('CHOKAQ_EFFECT_WAITING')
    expect(await early.finish(returned)).toMatchObject({ kind: 'waiting', delayMs: 40_000 })
    scene.ledger.nowMs += 40_000
    await scene.next({ charge: effect(of) }, 3).call('charge')
    expect(calls).toHaveLength(1)
  })

  it('that throws, or says something else, has told nothing', async () => {
    for (const reconcile of [
      async () => {
        throw new Error('away')
      },
      async () => 'maybe' as never,
      async () => undefined as never,
      async () => null as never,
    ]) {
      const of = { provider: keyless, reconcile }
      const scene = await doubtful(of)
      scene.ledger.nowMs += 60_000
      const again = scene.next({ charge: effect(of) })
      expect((await refusalOf(again.call('charge'))).code).toBe('CHOKAQ_EFFECT_WAITING')
      expect(calls).toEqual([])
    }
  })

  it('a wait is no obstacle to a cancel, and a review outweighs it', async () => {
    const waiting = { provider: keyless, reconcile: async () => 'unknown' as const }
    const scene = await doubtful(waiting)
    const again = scene.next({ charge: effect(waiting), mail: effect({ name: 'mail', provider: keyless }) })
    await again.call('charge').catch(() => undefined)
    const failure = { name: 'Error', message: 'cancelled' }
    const aborted: AttemptEnd = { kind: 'aborted', by: 'cancel', failure, thrown: undefined }
    expect(await again.finish(aborted)).toBe(aborted)
    expect(await again.finish(returned)).toMatchObject({ kind: 'waiting' })
  })
})
