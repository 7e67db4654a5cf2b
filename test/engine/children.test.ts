// Children of a handler, what is kept of a finished job, and dead jobs that are brought back.
import { defineJob, type ChokaQError } from 'chokaq'
import { ReviewNeeded } from 'chokaq/worker'
import { z } from 'zod'
import { describe, expect, test } from 'vitest'
import { capture, capturing, resize, resizing } from './contracts.ts'
import { storages } from './storages.ts'
import { ada, codeOf, worlds, type World } from './world.ts'

const childrenOf = async (world: World): Promise<readonly (string | null)[]> =>
  (await world.chokaq.jobs.list('hot', { type: resize.type })).jobs.map(({ payload }) => payload).sort()

describe.each(storages)('ctx.enqueue on $name', (kind) => {
  const open = worlds(kind)

  test('commits with the completion and belongs to parent and tenant', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' }, { tenant: 'acme' })
    const handler = capturing(async (_p, ctx) => {
      await ctx.enqueue(resize, { id: 'a' }, { priority: 7, tags: ['t'], delay: '1h', queue: 'q' })
      expect(await childrenOf(world)).toEqual([])
      return { chargeId: 'c' }
    })
    await world.worker([handler]).tick()
    const [child] = (await world.chokaq.jobs.list('hot')).jobs
    expect(child).toMatchObject({
      payload: '{"id":"a"}',
      state: 'scheduled',
      parentId: id,
      tenant: 'acme',
      priority: 7,
      tags: ['t'],
      queue: 'q',
    })
  })

  test('is dropped with a failed attempt, and made anew by the next', async () => {
    const world = open()
    await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    const handler = capturing(async (_p, ctx) => {
      await ctx.enqueue(resize, { id: `attempt-${ctx.attempt}` })
      if (ctx.attempt === 1) throw new Error('no')
      return { chargeId: 'c' }
    })
    await world.drain([handler])
    expect(await childrenOf(world)).toEqual(['{"id":"attempt-2"}'])
  })

  test('with a held key is left out', async () => {
    const world = open()
    await world.chokaq.enqueue(capture, { paymentId: 'child' })
    const parent = resizing(async (_p, ctx) => {
      await ctx.enqueue(capture, { paymentId: 'child' })
    })
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    await world.drain([parent])
    expect(await world.state(id)).toBe('completed')
    expect((await world.chokaq.jobs.list('hot')).jobs).toHaveLength(1)
  })

  test('of one name and two payloads is refused at once', async () => {
    const world = open()
    const codes: string[] = []
    const handler = capturing(async (_p, ctx) => {
      await ctx.enqueue(resize, { id: 'a' }, { item: 'x' })
      await ctx.enqueue(resize, { id: 'a' }, { item: 'x' })
      codes.push(await codeOf(ctx.enqueue(resize, { id: 'b' }, { item: 'x' })))
      return { chargeId: 'c' }
    })
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    await world.drain([handler])
    expect(codes).toEqual(['CHOKAQ_CHILD_REUSED'])
    expect(await world.state(id)).toBe('completed')
    expect(await childrenOf(world)).toEqual(['{"id":"a"}'])
  })

  test('whose name is stored with another payload waits for a person, and the events say so', async () => {
    const world = open()
    let runs = 0
    const handler = capturing(async (_p, ctx) => {
      runs += 1
      await ctx.enqueue(resize, { id: `run ${runs}` }, { item: 'x' })
      return { chargeId: 'c' }
    })
    await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    await world.drain([handler])
    // The marker is over, so the same operation runs once more, and its children have the same names.
    await world.runtime.advance(50 * 86_400_000)
    const again = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    await world.drain([handler])
    expect(await world.state(again.id)).toBe('completed')
    expect(await childrenOf(world)).toEqual(['{"id":"run 1"}'])
    const [dead, ...others] = (await world.chokaq.dlq.list()).jobs
    expect(others).toEqual([])
    const failure = { code: 'CHOKAQ_CHILD_REUSED' }
    expect(dead).toMatchObject({ reason: 'KeyReused', payload: '{"id":"run 2"}', parentId: again.id, failure })
    expect(world.of('job.dead')).toMatchObject([{ jobId: dead?.id, type: resize.type, reason: 'KeyReused', failure }])
  })

  test('refuses a bad child without costing the handler more than an error', async () => {
    const world = open()
    const codes: string[] = []
    const handler = resizing(async (_p, ctx) => {
      codes.push(await codeOf(ctx.enqueue(resize, { id: 7 } as never)))
      codes.push(await codeOf(ctx.enqueue(resize, { id: 'a' }, { priority: 9_999 })))
      codes.push(await codeOf(ctx.enqueue(resize, { id: 'a' }, { tx: {} } as never)))
      codes.push(await codeOf(ctx.enqueue(capture, { paymentId: '' })))
    })
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    await world.drain([handler])
    expect(codes).toEqual([
      'CHOKAQ_PAYLOAD_INVALID',
      'CHOKAQ_OPTION_INVALID',
      'CHOKAQ_TX_UNSUPPORTED',
      'CHOKAQ_EMPTY_KEY',
    ])
    expect(await world.state(id)).toBe('completed')
    expect(await childrenOf(world)).toEqual([])
  })

  test('that is not awaited fails the attempt instead of losing the child', async () => {
    const world = open()
    const slow = defineJob({
      type: 'slow.v1',
      payload: z.object({}).refine(
        () =>
          new Promise<boolean>((resolve) =>
            world.runtime.scheduler.after(100, () => {
              resolve(true)
            }),
          ),
      ),
    })
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    const handler = resizing(
      async (_p, ctx) => {
        void ctx.enqueue(slow, {})
      },
      { retry: { attempts: 1 } },
    )
    await world.drain([handler])
    expect(await world.job(id)).toMatchObject({ state: 'dead', failure: { code: 'CHOKAQ_CTX_REVOKED' } })
    await world.runtime.advance(100)
  })

  test('is bounded to a thousand children', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    let error: unknown
    const handler = resizing(async (_p, ctx) => {
      for (let i = 0; i < 1_000; i += 1) await ctx.enqueue(capture, { paymentId: String(i) })
      error = await ctx.enqueue(capture, { paymentId: 'x' }).catch((thrown: unknown) => thrown)
    })
    await world.drain([handler])
    expect((error as ChokaQError).code).toBe('CHOKAQ_OPTION_INVALID')
    expect(await world.state(id)).toBe('completed')
    expect(await world.counter('jobs.enqueued')).toBe(1_001)
  })
})

describe.each(storages)('keep { completed: 0 } on $name', (kind) => {
  const open = worlds(kind)

  test('drops payload and result, and leaves a stub for resendFor', async () => {
    const world = open({ resendFor: '2m' })
    const id = '0190a0a0-0000-7000-8000-000000000001'
    await world.chokaq.enqueue(resize, { id: 'a' }, { id })
    const worker = await world.start([resizing(async () => 'secret', { keep: { completed: 0 } })])
    await world.runtime.advance(1_000)
    expect(await world.job(id)).toMatchObject({ state: 'completed', payload: null, result: null })
    expect(await world.chokaq.enqueue(resize, { id: 'a' }, { id })).toEqual({ outcome: 'enqueued', id })
    await world.runtime.advance(1_000)
    expect(await world.counter('jobs.completed')).toBe(1)
    await world.runtime.advance(4 * 60_000)
    expect(await world.state(id)).toBe('nowhere')
    await world.stop(worker)
  })
})

describe.each(storages)('resurrect on $name', (kind) => {
  const open = worlds(kind)
  const failing = capturing(() => Promise.reject(new Error('no')), { retry: { attempts: 1 } })

  async function dead(world: World): Promise<string> {
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    await world.drain([failing])
    expect(await world.state(id)).toBe('dead')
    return id
  }

  test('continue finishes the same operation under the same keys', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    const keys: string[] = []
    const handler = capturing(
      async (_p, ctx) => {
        keys.push(ctx.idempotencyKey('charge'))
        if (keys.length === 1) throw new Error('no')
        return { chargeId: 'c' }
      },
      { retry: { attempts: 1 } },
    )
    await world.drain([handler])
    expect(await world.chokaq.dlq.resurrect(id, { mode: 'continue' }, ada)).toEqual({
      kind: 'resurrected',
      generation: 1,
    })
    expect(await world.job(id)).toMatchObject({ state: 'pending', failureCount: 0, attempt: 1 })
    await world.drain([handler])
    expect(await world.job(id)).toMatchObject({ state: 'completed', attempt: 2 })
    expect(keys[0]).toBe(keys[1])
    expect(await world.chokaq.insight.audit()).toMatchObject([{ actor: 'ada', subject: id }])
  })

  test('a new operation takes the next generation and other provider keys', async () => {
    const world = open()
    const keys: string[] = []
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    const handler = capturing(async (_p, ctx) => {
      keys.push(ctx.idempotencyKey('charge'))
      if (keys.length === 1) throw new ReviewNeeded('look')
      return { chargeId: 'c' }
    })
    await world.drain([handler])
    expect(await world.chokaq.dlq.resurrect(id, { mode: 'continue' }, ada)).toEqual({ kind: 'in-doubt' })
    const anew = (absence?: string): Promise<unknown> =>
      world.chokaq.dlq.resurrect(id, { mode: 'new-operation', ...(absence === undefined ? {} : { absence }) }, ada)
    expect([await codeOf(anew()), await codeOf(anew(' '))]).toEqual([
      'CHOKAQ_ABSENCE_UNPROVEN',
      'CHOKAQ_OPTION_INVALID',
    ])
    expect(await anew('no charge in the list')).toEqual({ kind: 'resurrected', generation: 2 })
    await world.drain([handler])
    expect(await world.job(id)).toMatchObject({ state: 'completed', generation: 2 })
    expect(keys[0]).not.toBe(keys[1])
  })

  test('shows an active holder, a live marker and a second operator', async () => {
    const world = open()
    const id = await dead(world)
    const { revision } = await world.job(id)
    const holder = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    const resurrect = (mode: 'continue' | 'new-operation', more: object = {}): Promise<unknown> =>
      world.chokaq.dlq.resurrect(id, { mode, ...more }, ada)
    expect(await resurrect('continue')).toEqual({ kind: 'active', jobId: holder.id })
    await world.drain([capturing()])
    expect(await resurrect('continue')).toEqual({ kind: 'marked', jobId: holder.id, state: 'completed' })
    expect(await resurrect('new-operation', { revision: revision + 5 })).toMatchObject({ kind: 'changed' })
    expect(await world.chokaq.dlq.resurrect('00000000-0000-7000-8000-000000000000', { mode: 'continue' }, ada)).toEqual(
      {
        kind: 'not-found',
      },
    )
  })

  test('continue is refused once a marker of the operation could have come and gone', async () => {
    const world = open()
    const id = await dead(world)
    await world.runtime.advance(50 * 86_400_000)
    expect(await world.chokaq.dlq.resurrect(id, { mode: 'continue' }, ada)).toEqual({ kind: 'too-old' })
    expect(await world.chokaq.dlq.resurrect(id, { mode: 'new-operation' }, ada)).toMatchObject({ kind: 'resurrected' })
  })

  test('an edited payload is checked by the contract, by the key, and again by the worker', async () => {
    const world = open()
    const id = await dead(world)
    const edit = (payload: unknown, job?: typeof capture): Promise<unknown> =>
      world.chokaq.dlq.resurrect(id, { mode: 'continue', payload, ...(job === undefined ? {} : { job }) }, ada)
    expect(await codeOf(edit({ paymentId: 'p1' }))).toBe('CHOKAQ_CONTRACT_INVALID')
    expect(await codeOf(edit({ id: 'a' }, resize as never))).toBe('CHOKAQ_CONTRACT_INVALID')
    expect(await codeOf(edit({ paymentId: 7 }, capture))).toBe('CHOKAQ_PAYLOAD_INVALID')
    expect(await edit({ paymentId: 'p2' }, capture)).toEqual({ kind: 'key-changed' })
    expect(await edit({ paymentId: 'p1', note: 'edited' }, capture)).toMatchObject({ kind: 'resurrected' })
    await world.drain([capturing()])
    expect(await world.job(id)).toMatchObject({ state: 'completed', payload: '{"paymentId":"p1","note":"edited"}' })
  })

  test('an edited payload that no contract checked is rejected on the worker', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    await world.drain([resizing(() => Promise.reject(new Error('no')), { retry: { attempts: 1 } })])
    expect(await codeOf(world.chokaq.dlq.resurrect(id, { mode: 'continue', payload: { id: 1n } }, ada))).toBe(
      'CHOKAQ_NOT_JSON',
    )
    await world.chokaq.dlq.resurrect(id, { mode: 'continue', payload: { wrong: true } }, ada)
    await world.drain([resizing(async () => 1)])
    expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'Rejected' })
  })

  test('purge forgets dead jobs, those in doubt excepted', async () => {
    const world = open()
    const id = await dead(world)
    await world.chokaq.enqueue(capture, { paymentId: 'p2' })
    await world.drain([capturing(() => Promise.reject(new ReviewNeeded('look')))])
    expect(await world.chokaq.dlq.purge({ filter: {} }, ada)).toBe(1)
    expect(await world.state(id)).toBe('nowhere')
    expect((await world.chokaq.dlq.list()).jobs).toMatchObject([{ inDoubt: true }])
  })
})
