import { describe, expect, it } from 'vitest'
import type { CallOptions } from '../../core/effect.ts'
import { effect, EffectScene, keyless, refusalOf, reset, failing } from '../../testing/effect-scene.ts'

/** Waits as a client does that was given the signal, and fails with the reason of its abort. */
function untilAborted(_input: unknown, { signal }: CallOptions): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => {
      reject(signal.reason as Error)
    })
  })
}

describe('the signal of a call', () => {
  it('aborts when the call takes longer than its callTimeout, and the outcome is in doubt', async () => {
    const scene = new EffectScene({ charge: effect({ run: untilAborted, callTimeout: '10s' }) })
    const refusal = refusalOf(scene.call('charge'))
    let ended = false
    void refusal.then(() => (ended = true))
    await scene.runtime.advance(9_999)
    expect(ended).toBe(false)
    await scene.runtime.advance(1)
    expect((await refusal).code).toBe('CHOKAQ_EFFECT_TIMEOUT')
    expect(scene.ledger.states('charge')).toEqual(['ambiguous'])
  })

  it('aborts with the attempt', async () => {
    const scene = new EffectScene({ charge: effect({ run: untilAborted }) })
    const ended = scene.call('charge').catch((error: unknown) => error)
    await scene.runtime.advance(1)
    const reason = new Error('cancelled')
    scene.controller.abort(reason)
    expect(await ended).toBe(reason)
    expect(scene.ledger.states('charge')).toEqual(['ambiguous'])
  })

  it('stays quiet after a call that ended in time', async () => {
    let kept: AbortSignal | undefined
    const run = async (_input: unknown, { signal }: CallOptions) => void (kept = signal)
    const scene = new EffectScene({ charge: effect({ run, callTimeout: '10s' }) })
    await scene.call('charge')
    await scene.runtime.advance(60_000)
    expect(kept?.aborted).toBe(false)
    expect(scene.ledger.states('charge')).toEqual(['done'])
  })

  it('does not end a call that ignores it: what it answers, however late, is the outcome', async () => {
    const finish: (() => void)[] = []
    const run = () => new Promise<{ id: string }>((resolve) => finish.push(() => resolve({ id: 'late' })))
    const scene = new EffectScene({ charge: effect({ run, callTimeout: '10s' }) })
    const answer = scene.call('charge')
    await scene.runtime.advance(60_000)
    for (const each of finish) each()
    expect(await answer).toEqual({ id: 'late' })
    expect(scene.ledger.states('charge')).toEqual(['done'])
  })

  it('bounds reconcile too, which then has told nothing', async () => {
    const change = { provider: keyless, reconcile: untilAborted, callTimeout: '10s' } as const
    const scene = new EffectScene({ charge: failing(reset, change) })
    await scene.call('charge').catch(() => undefined)
    scene.ledger.nowMs += 60_000
    const again = scene.next({ charge: effect(change) })
    const refusal = refusalOf(again.call('charge'))
    await again.runtime.advance(10_000)
    expect((await refusal).code).toBe('CHOKAQ_EFFECT_WAITING')
  })
})
