// Aborts: the timeout, the grace, handlers that do not listen, and cancels on every side.
import { describe, expect, test } from 'vitest'
import type { ChokaQError } from 'chokaq'
import { capture, capturing, resize, resizing, unguarded } from './contracts.ts'
import { sharedStorages, storages } from './storages.ts'
import { ada, gate, worlds } from './world.ts'

describe.each(storages)('a timeout on $name', (kind) => {
  const open = worlds(kind)

  test('aborts the signal with its reason, and a handler that listens has failed', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    let reason: unknown
    const handler = resizing(
      (_p, ctx) =>
        new Promise((_resolve, reject) => {
          ctx.signal.addEventListener('abort', () => {
            reason = ctx.signal.reason
            reject(new Error('I stop'))
          })
        }),
      { timeout: '2s', retry: { attempts: 1 } },
    )
    await world.drain([handler])
    expect((reason as ChokaQError).code).toBe('CHOKAQ_JOB_TIMEOUT')
    expect(await world.job(id)).toMatchObject({
      reason: 'Timeout',
      failureCount: 1,
      failure: { code: 'CHOKAQ_JOB_TIMEOUT', causes: [{ message: 'I stop' }] },
    })
    expect(world.of('job.aborted')).toMatchObject([{ jobId: id, by: 'timeout' }])
    expect(world.of('job.abandoned')).toEqual([])
  })

  test('that is answered within the grace by a result has completed', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    const handler = resizing(
      (_p, ctx) =>
        new Promise((resolve) => {
          ctx.signal.addEventListener('abort', () => {
            resolve('just in time')
          })
        }),
      { timeout: '2s' },
    )
    await world.drain([handler])
    expect(await world.job(id)).toMatchObject({ state: 'completed', result: '"just in time"' })
  })

  test('abandons a deaf handler after the grace, revokes its ctx and gives its slot away', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'deaf' }, { priority: 1 })
    const next = await world.chokaq.enqueue(resize, { id: 'next' })
    const late = gate()
    let refused: unknown
    const handler = resizing(
      async (p, ctx) => {
        if (p.id === 'next') return 'ran'
        await late.promise
        await ctx.enqueue(resize, { id: 'child' }).catch((error: unknown) => (refused = error))
        return 'too late'
      },
      { timeout: '2s', retry: { attempts: 1 } },
    )
    const worker = await world.start([handler], { concurrency: 1 })
    await world.runtime.advance(4_999)
    expect(await world.state(id)).toBe('processing')
    await world.runtime.advance(1)
    expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'Timeout' })
    expect(world.of('job.abandoned')).toMatchObject([{ jobId: id, abandonedCount: 1 }])

    // One abandoned handler of one slot clogs the worker: nothing starts until it ends.
    await world.runtime.advance(30_000)
    expect(await world.state(next.id)).toBe('pending')
    late.open()
    await world.runtime.settle()
    expect(await world.state(next.id)).toBe('completed')
    expect((refused as ChokaQError).code).toBe('CHOKAQ_CTX_REVOKED')
    expect(await world.job(id)).toMatchObject({ state: 'dead', result: null })
    await world.stop(worker)
  })

  test('abandoned handlers of up to half the concurrency leave the rest to work', async () => {
    const world = open()
    const late = gate()
    const handler = resizing((p) => (p.id === 'deaf' ? late.promise : Promise.resolve('ran')), {
      timeout: '1s',
      retry: { attempts: 1 },
    })
    await world.chokaq.enqueueMany(resize, [{ id: 'deaf' }, { id: 'deaf' }])
    const worker = await world.start([handler], { concurrency: 4 })
    await world.runtime.advance(10_000)
    const third = await world.chokaq.enqueue(resize, { id: 'ok' })
    await world.runtime.advance(2_000)
    expect(await world.state(third.id)).toBe('completed')
    await world.chokaq.enqueue(resize, { id: 'deaf' })
    await world.runtime.advance(10_000)
    const stuck = await world.chokaq.enqueue(resize, { id: 'ok' })
    await world.runtime.advance(30_000)
    expect(await world.state(stuck.id)).toBe('pending')
    // More slots make three abandoned handlers bearable again.
    worker.setConcurrency(6)
    await world.runtime.advance(2_000)
    expect(await world.state(stuck.id)).toBe('completed')
    late.open()
  })
})

describe.each(storages)('cancel on $name', (kind) => {
  const open = worlds(kind)

  test('ends a waiting job at once, and it never starts', async () => {
    const world = open()
    const pending = await world.chokaq.enqueue(resize, { id: 'a' })
    const scheduled = await world.chokaq.enqueue(resize, { id: 'b' }, { delay: '1h' })
    for (const { id } of [pending, scheduled]) {
      expect(await world.chokaq.jobs.cancel(id, ada)).toEqual({ kind: 'cancelled' })
      expect(await world.chokaq.jobs.cancel(id, ada)).toEqual({ kind: 'finished', state: 'cancelled' })
    }
    expect(await world.drain([resizing(async () => undefined)])).toBe(0)
    expect(await world.job(pending.id)).toMatchObject({ pillar: 'archive', state: 'cancelled', attempt: 0 })
    expect(await world.chokaq.jobs.cancel('00000000-0000-7000-8000-000000000000', ada)).toEqual({ kind: 'not-found' })
  })

  test('gives the key of a cancelled job free', async () => {
    const world = open()
    const first = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    await world.chokaq.jobs.cancel(first.id, ada)
    expect(await world.chokaq.enqueue(capture, { paymentId: 'p1' })).toMatchObject({ outcome: 'enqueued' })
    expect(await world.counter('idempotency.claims', 'released')).toBe(1)
  })

  test('of a running job aborts its signal within a heartbeat', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    const worker = await world.start([resizing(untilAborted)])
    await world.runtime.settle()
    expect(await world.chokaq.jobs.cancel(id, ada)).toEqual({ kind: 'requested' })
    await world.runtime.advance(5_000)
    expect(await world.state(id)).toBe('cancelled')
    expect(world.of('job.aborted')).toMatchObject([{ by: 'cancel' }])
    expect(world.of('job.cancelled')).toMatchObject([{ jobId: id }])
    await world.stop(worker)
  })

  test('of a job that finishes all the same comes too late', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    const handler = resizing((_p, ctx) => untilAborted(_p, ctx).catch(() => 'finished'))
    const worker = await world.start([handler])
    await world.runtime.settle()
    await world.chokaq.jobs.cancel(id, ada)
    await world.runtime.advance(5_000)
    expect(await world.job(id)).toMatchObject({ state: 'completed', result: '"finished"' })
    await world.stop(worker)
  })

  test('of a failing job ends it instead of retrying it', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    const go = gate()
    const worker = await world.start([resizing(() => go.promise)])
    await world.runtime.settle()
    await world.chokaq.jobs.cancel(id, ada)
    go.fail(new Error('no'))
    await world.runtime.settle()
    expect(await world.state(id)).toBe('cancelled')
    await world.stop(worker)
  })

  test('of a review handler that had started parks it in doubt', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    const worker = await world.start([unguarded(untilAborted)])
    await world.runtime.settle()
    await world.chokaq.jobs.cancel(id, ada)
    await world.runtime.advance(5_000)
    expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'InDoubt', inDoubt: true })
    await world.stop(worker)
  })

  test('of a job in the buffer keeps its handler from running', async () => {
    const world = open()
    const go = gate()
    const ran: string[] = []
    const handler = resizing((p) => {
      ran.push(p.id)
      return go.promise
    })
    const [running, buffered] = [
      await world.chokaq.enqueue(resize, { id: 'running' }),
      await world.chokaq.enqueue(resize, { id: 'buffered' }),
    ]
    const worker = await world.start([handler], { concurrency: 1 })
    await world.runtime.settle()
    // The fetch has started it already, as its type may; only its handler has not been called.
    expect(await world.state(buffered.id)).toBe('processing')
    expect(await world.chokaq.jobs.cancel(buffered.id, ada)).toEqual({ kind: 'requested' })
    await world.runtime.advance(5_000)
    expect(await world.job(buffered.id)).toMatchObject({ state: 'cancelled' })
    go.open()
    await world.runtime.advance(2_000)
    expect(await world.state(running.id)).toBe('completed')
    expect(ran).toEqual(['running'])
    await world.stop(worker)
  })
})

describe.each(sharedStorages)('cancel from another client on $name', (kind) => {
  const open = worlds(kind)

  test('reaches a running handler', async () => {
    const world = open()
    const other = world.client()
    const { id } = await other.enqueue(capture, { paymentId: 'p1' })
    const worker = await world.start([capturing(untilAborted)])
    await world.runtime.advance(1_000)
    expect(await other.jobs.cancel(id, ada)).toEqual({ kind: 'requested' })
    await world.runtime.advance(5_000)
    expect(await world.state(id)).toBe('cancelled')
    await world.stop(worker)
  })
})

function untilAborted(_payload: unknown, ctx: { readonly signal: AbortSignal }): Promise<never> {
  return new Promise((_resolve, reject) => {
    ctx.signal.addEventListener('abort', () => {
      reject(ctx.signal.reason as Error)
    })
  })
}
