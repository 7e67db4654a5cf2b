import { describe, expect, it } from 'vitest'
import { NotExecuted } from '../../core/control-flow.ts'
import { ChokaQError } from '../../core/errors.ts'
import { calls, effect, EffectScene, failing, refusalOf, reset, returned } from '../../testing/effect-scene.ts'

describe('an effect', () => {
  it('writes its intent before the call and its outcome after, and gives what is stored', async () => {
    const scene = new EffectScene({ charge: effect({ run: async () => ({ at: new Date(0), gone: undefined }) }) })
    expect(await scene.call('charge', { amount: 1 })).toEqual({ at: '1970-01-01T00:00:00.000Z' })
    expect(await scene.finish(returned)).toEqual(returned)
    expect(scene.ledger.requests.map(({ kind }) => kind)).toEqual(['open', 'close'])
    expect(scene.ledger.states('charge')).toEqual(['done'])
    expect(scene.outcomes).toEqual(['charge done'])
  })

  it('E31 remembers falsy results as results, on the first run and later', async () => {
    for (const value of [0, '', false, null, undefined]) {
      const of = { charge: effect({ run: async () => (calls.push({ input: value, key: '' }), value) }) }
      const scene = new EffectScene(of)
      expect(await scene.call('charge')).toBe(value)
      const again = scene.next(of)
      expect(await again.call('charge')).toBe(value)
      expect(calls).toHaveLength(1)
      expect(again.outcomes).toEqual(['charge replayed'])
    }
  })

  it('E31 drops a NaN, which JSON has no word for, and never calls again', async () => {
    const scene = new EffectScene({ charge: effect({ run: async () => (calls.push({ input: 0, key: '' }), NaN) }) })
    expect((await refusalOf(scene.call('charge'))).code).toBe('CHOKAQ_EFFECT_RESULT_DROPPED')
    expect(scene.ledger.states('charge')).toEqual(['done'])
  })

  it('E30 a result that cannot be stored leaves it done, and says to return ids', async () => {
    const of = { charge: effect({ run: async () => (calls.push({ input: 0, key: '' }), 'x'.repeat(5_000)) }) }
    const scene = new EffectScene(of)
    for (const each of [scene, scene.next(of)]) {
      const error = await refusalOf(each.call('charge'))
      expect(error.code).toBe('CHOKAQ_EFFECT_RESULT_DROPPED')
      expect(error.message).toContain('Return ids instead of documents')
    }
    expect(calls).toHaveLength(1)
  })

  it('E21 E22 has a key of its own for each name and item, the same on every attempt', async () => {
    const of = { charge: effect(), mail: effect({ name: 'mail' }) }
    const scene = new EffectScene(of)
    await Promise.all([scene.call('charge'), scene.call('mail', {}, 'a'), scene.call('mail', {}, 'b')])
    const keys = calls.map(({ key }) => key)
    expect(new Set(keys).size).toBe(3)
    const crashed = new EffectScene(of)
    await Promise.all([crashed.call('charge'), crashed.call('mail', {}, 'a')])
    expect(calls.slice(3).map(({ key }) => key)).toEqual(keys.slice(0, 2))
  })

  it('runs in parallel with others of its name, told apart by items', async () => {
    const scene = new EffectScene({ mail: effect({ name: 'mail' }) })
    const items = Array.from({ length: 20 }, (_, index) => String(index))
    const results = await Promise.all(items.map((item) => scene.call('mail', { item }, item)))
    expect(new Set(results.map((each) => (each as { id: string }).id)).size).toBe(20)
    expect(await scene.finish(returned)).toEqual(returned)
    expect(scene.ledger.states('mail')).toEqual(items.map(() => 'done'))
  })

  it('called twice with one item is refused, and says to give items', async () => {
    const scene = new EffectScene({ charge: effect() })
    await scene.call('charge', {}, 'a')
    const error = await refusalOf(scene.call('charge', {}, 'a'))
    expect(error.code).toBe('CHOKAQ_EFFECT_REPEATED')
    expect(error.message).toContain('Give each call its own item')
    await scene.call('charge', {}, 'b')
    expect(calls).toHaveLength(2)
  })

  it('with another input than recorded is never called: the job is parked', async () => {
    const scene = new EffectScene({ charge: failing(reset) })
    await scene.call('charge', { amount: 1 }).catch(() => undefined)
    const again = scene.next({ charge: effect() })
    const error = await refusalOf(again.call('charge', { amount: 2 }))
    expect(error.code).toBe('CHOKAQ_EFFECT_INPUT_CHANGED')
    expect(error.message).toContain('Derive the input from the payload and from memos')
    expect(calls).toEqual([])
    expect(await again.finish(returned)).toMatchObject({ kind: 'parked', failure: { code: error.code } })
  })

  it('with the same input in another order of its fields is the same', async () => {
    const of = { charge: effect() }
    const scene = new EffectScene(of)
    await scene.call('charge', { a: 1, b: 2 })
    expect(await scene.next(of).call('charge', { b: 2, a: 1 })).toEqual({ id: 'charge-1' })
  })
})

describe('the guards of an effect', () => {
  it.each([
    ['after the attempt', new ChokaQError('CHOKAQ_CTX_REVOKED', { jobId: 'job-1', call: 'effects.charge' }), 'Await'],
    ['after completion', new ChokaQError('CHOKAQ_EFFECT_AFTER_COMPLETE', { effect: 'charge', jobId: 'j' }), 'last'],
    ['after lease loss', new ChokaQError('CHOKAQ_LEASE_LOST', { jobId: 'job-1' }), 'stop its work'],
  ])('refuse it %s, before anything is written', async (_name, error, advice) => {
    const scene = new EffectScene({ charge: effect() })
    scene.check = () => {
      throw error
    }
    const refusal = await refusalOf(scene.call('charge'))
    expect([refusal.code, calls, scene.ledger.requests]).toEqual([error.code, [], []])
    expect(refusal.message).toContain(advice)
  })

  it('refuse it where the lease is another worker’s by now', async () => {
    const scene = new EffectScene({ charge: effect() })
    scene.ledger.owned = false
    expect((await refusalOf(scene.call('charge'))).code).toBe('CHOKAQ_LEASE_LOST')
    expect(calls).toEqual([])
  })

  it('E4 look again between the intent and the call: what stood still meanwhile does not act', async () => {
    for (const stop of ['fenced', 'revoked'] as const) {
      const scene = new EffectScene({ charge: effect() })
      scene.ledger.before = ({ kind }) => {
        if (kind !== 'open') return
        if (stop === 'fenced') scene.confirmed = false
        scene.check = () => {
          if (stop === 'revoked')
            throw new ChokaQError('CHOKAQ_CTX_REVOKED', { jobId: 'job-1', call: 'effects.charge' })
        }
      }
      await refusalOf(scene.call('charge'))
      await scene.finish(returned)
      expect([calls, scene.ledger.states('charge')]).toEqual([[], ['not-executed']])
    }
  })

  it('E13 look at the window once more: a repeat that comes too late does not act', async () => {
    const scene = new EffectScene({ charge: failing(reset) })
    await scene.call('charge').catch(() => undefined)
    const again = scene.next({ charge: effect() })
    let opens = 0
    again.ledger.before = ({ kind }) => {
      if (kind !== 'open') return
      opens += 1
      // Between the decision and its commit a day passes.
      if (opens === 2) again.ledger.nowMs += 86_400_000
    }
    expect((await refusalOf(again.call('charge'))).code).toBe('CHOKAQ_EFFECT_IN_DOUBT')
    expect(calls).toEqual([])
    expect(scene.ledger.states('charge')).toEqual(['ambiguous', 'not-executed'])
  })

  it('E33 fail a handler that returned while one was under way, and let it come back first', async () => {
    let finish: () => void = () => undefined
    const scene = new EffectScene({
      charge: effect({ run: () => new Promise((resolve) => (finish = () => resolve(1))) }),
    })
    void scene.call('charge')
    await scene.runtime.settle()
    const ended = scene.scope.finish(returned)
    finish()
    const end = await scene.runtime.complete(ended)
    expect(end).toMatchObject({ kind: 'threw', thrown: { code: 'CHOKAQ_EFFECT_UNAWAITED' } })
    expect((end as { thrown: Error }).thrown.message).toContain('Await every effect')
    expect(scene.ledger.states('charge')).toEqual(['done'])
    expect(scene.runtime.pendingTimerCount()).toBe(0)
  })

  it('E33 do not wait for ever, and a late rejection of what nobody awaits ends no process', async () => {
    let fail: (error: Error) => void = () => undefined
    const scene = new EffectScene({ charge: effect({ run: () => new Promise((_, reject) => (fail = reject)) }) })
    void scene.call('charge')
    await scene.runtime.settle()
    expect(await scene.finish(returned)).toMatchObject({ thrown: { code: 'CHOKAQ_EFFECT_UNAWAITED' } })
    expect(scene.runtime.clock.monotonicMs()).toBe(3_000)
    expect(scene.ledger.states('charge')).toEqual(['open'])
    fail(reset)
    await scene.runtime.settle()
    expect(scene.ledger.states('charge')).toEqual(['ambiguous'])
  })

  it('let the others of a failed Promise.all come back before the job is settled', async () => {
    let finish: () => void = () => undefined
    const slow = effect({ name: 'slow', run: () => new Promise((resolve) => (finish = () => resolve('late'))) })
    const scene = new EffectScene({ charge: failing(new NotExecuted('sold out')), slow })
    const both = Promise.all([scene.call('charge'), scene.call('slow')])
    const thrown: unknown = await both.catch((error: unknown) => error)
    const ended = scene.scope.finish({ kind: 'threw', thrown })
    finish()
    expect(await scene.runtime.complete(ended)).toEqual({ kind: 'threw', thrown })
    expect(scene.ledger.states('slow')).toEqual(['done'])
  })

  it('refuse to complete in a transaction while one is under way; outcomes on their way go along', async () => {
    const scene = new EffectScene({ charge: effect(), slow: effect({ name: 'slow', run: () => new Promise(() => 0) }) })
    scene.ledger.before = ({ kind }) => (kind === 'close' ? new Promise(() => undefined) : undefined)
    await scene.call('charge')
    expect(scene.scope.outcomes()).toMatchObject([{ kind: 'close', state: 'done' }])
    scene.call('slow').catch(() => undefined)
    expect(() => scene.scope.outcomes()).toThrow(expect.objectContaining({ code: 'CHOKAQ_EFFECT_UNAWAITED' }) as Error)
  })

  it('E48 stop a later attempt whose recorded effect is no longer declared', async () => {
    const scene = new EffectScene({ charge: effect() })
    await scene.call('charge')
    const end = await scene.next({ pay: effect({ name: 'pay' }) }).scope.check()
    expect(end).toMatchObject({ kind: 'parked', failure: { code: 'CHOKAQ_EFFECT_ORPHANED' } })
    expect(end?.kind === 'parked' && end.failure.message).toContain('Deploy a handler that declares them')
    expect(await scene.next({ charge: effect() }).scope.check()).toBeUndefined()
  })

  it('E48 stop the first attempt of a new job of the key, too, before its first call', async () => {
    const scene = new EffectScene({ charge: effect() })
    await scene.call('charge')
    const renamed = { pay: effect({ name: 'pay' }) }
    const other = new EffectScene(renamed, scene.ledger, 1)
    expect((await refusalOf(other.call('pay'))).code).toBe('CHOKAQ_EFFECT_ORPHANED')
    expect(calls).toEqual([])
    expect(await other.finish(returned)).toMatchObject({ kind: 'parked' })
    expect(scene.ledger.states('pay')).toEqual(['not-executed'])
  })

  it('E48 stop a first attempt that only finds again what an earlier job of the key has done', async () => {
    const scene = new EffectScene({ charge: effect(), mail: effect({ name: 'mail' }) })
    await scene.call('charge')
    await scene.call('mail')
    const other = new EffectScene({ charge: effect() }, scene.ledger, 1)
    expect((await refusalOf(other.call('charge'))).code).toBe('CHOKAQ_EFFECT_ORPHANED')
    expect(await other.finish(returned)).toMatchObject({ kind: 'parked' })
  })
})

describe('a memo', () => {
  it('E31 is computed once, whatever it gives', async () => {
    for (const value of [0, '', false, null, undefined, { a: [1] }]) {
      const scene = new EffectScene({})
      let computed = 0
      const compute = () => ((computed += 1), value)
      expect(await scene.scope.memo('m', compute)).toEqual(value)
      expect(await scene.next({}).scope.memo('m', compute)).toEqual(value)
      expect(computed).toBe(1)
    }
  })

  it('with a name that was used is refused', async () => {
    const { scope } = new EffectScene({})
    await scope.memo('m', () => 1)
    const error = await refusalOf(scope.memo('m', () => 2))
    expect(error.code).toBe('CHOKAQ_MEMO_REPEATED')
    expect(error.message).toContain('its own name')
  })

  it('that another attempt remembered first gives what stands', async () => {
    const scene = new EffectScene({})
    const other = scene.next({})
    let first = true
    scene.ledger.before = async ({ kind }) => {
      if (kind !== 'remember' || !first) return
      first = false
      await other.scope.memo('m', () => 'theirs')
    }
    expect(await scene.scope.memo('m', () => 'mine')).toBe('theirs')
  })

  it('gives the stored form on the first run too, and refuses what cannot be stored', async () => {
    const { scope } = new EffectScene({})
    expect(await scope.memo('date', () => new Date(0))).toBe('1970-01-01T00:00:00.000Z')
    expect((await refusalOf(scope.memo('fn', () => () => 1))).code).toBe('CHOKAQ_NOT_JSON')
    expect((await refusalOf(scope.memo('large', () => 'x'.repeat(5_000)))).code).toBe('CHOKAQ_TOO_LARGE')
  })

  it('without the lease is refused', async () => {
    const scene = new EffectScene({})
    scene.ledger.owned = false
    expect((await refusalOf(scene.scope.memo('m', () => 1))).code).toBe('CHOKAQ_LEASE_LOST')
  })
})
