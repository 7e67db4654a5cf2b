// What follows a failed attempt: waits, budgets, and the errors with which a handler steers.
import { FatalError, NotExecuted, RetryAfter, ReviewNeeded } from 'chokaq/worker'
import { describe, expect, test } from 'vitest'
import { capture, capturing, resize, resizing, unguarded } from './contracts.ts'
import { storages } from './storages.ts'
import { worlds, type World } from './world.ts'

const noJitter = { backoff: { base: '3s', factor: 2, cap: '1h', jitter: 0 } }

/** Seconds since the start at which each attempt ran. */
async function attemptTimes(world: World, options: object, fail: () => unknown): Promise<number[]> {
  const startMs = world.runtime.clock.monotonicMs()
  const times: number[] = []
  const handler = resizing(async () => {
    times.push((world.runtime.clock.monotonicMs() - startMs) / 1000)
    throw fail()
  }, options)
  await world.drain([handler])
  return times
}

describe.each(storages)('retries on $name', (kind) => {
  const open = worlds(kind)

  test('wait 3 s, twice as long each time, at most an hour, 22 attempts by default', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    const times = await attemptTimes(world, { retry: noJitter }, () => new Error('no'))
    const waits = times.slice(1).map((at, i) => at - (times[i] ?? 0))
    expect(waits.slice(0, 5)).toEqual([3, 6, 12, 24, 48])
    expect(waits.slice(-3)).toEqual([3600, 3600, 3600])
    expect(times).toHaveLength(22)
    expect(await world.job(id)).toMatchObject({
      state: 'dead',
      reason: 'MaxRetriesExceeded',
      failureCount: 22,
      attempt: 22,
    })
    expect(await world.counter('jobs.retried', 'failed')).toBe(21)
    expect(world.of('job.dead')).toMatchObject([{ jobId: id, reason: 'MaxRetriesExceeded', hold: false }])
  })

  test('end with the retry lifetime, and say so', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    const times = await attemptTimes(world, { retry: { ...noJitter, for: '30s' } }, () => new Error('no'))
    expect(times).toEqual([0, 3, 9, 21])
    expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'RetryLifetimeExpired' })
  })

  test('keep the time of creation and record every failure', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    const before = await world.job(id)
    await attemptTimes(world, { retry: { ...noJitter, attempts: 3 } }, () => new Error('no'))
    const after = await world.job(id)
    expect(after.createdAtMs).toBe(before.createdAtMs)
    expect((JSON.parse(after.history ?? '[]') as unknown[]).length).toBe(3)
  })

  test('with one attempt there is none', async () => {
    const world = open()
    await world.chokaq.enqueue(resize, { id: 'a' })
    expect(await attemptTimes(world, { retry: { attempts: 1 } }, () => new Error('no'))).toEqual([0])
  })

  test('retryNow starts a waiting job at once', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' }, { delay: '1h' })
    expect(await world.chokaq.jobs.retryNow(id, { actor: 'ada', note: '' })).toBe(true)
    expect(await world.state(id)).toBe('pending')
    expect(await world.chokaq.jobs.retryNow(id, { actor: 'ada', note: '' })).toBe(false)
  })
})

describe.each(storages)('steering errors on $name', (kind) => {
  const open = worlds(kind)

  test('RetryAfter waits as told and costs nothing', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    let count = 0
    const times = await attemptTimes(world, { retry: { attempts: 1 } }, () => {
      count += 1
      if (count === 1) return new RetryAfter('10s')
      if (count === 2) return new RetryAfter(new Date(world.runtime.clock.nowMs() + 20_000))
      if (count === 3) return new RetryAfter(new Date(0))
      return new Error('at last')
    })
    expect(times).toEqual([0, 10, 30, 30])
    expect(await world.job(id)).toMatchObject({ reason: 'MaxRetriesExceeded', failureCount: 1, attempt: 4 })
    expect(await world.counter('jobs.retried', 'retry-after')).toBe(3)
  })

  test('RetryAfter ends with the retry lifetime', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    const times = await attemptTimes(world, { retry: { for: '1m' } }, () => new RetryAfter('25s'))
    expect(times).toEqual([0, 25, 50])
    expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'RetryLifetimeExpired' })
  })

  test('FatalError ends the job whatever its budget', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    expect(await attemptTimes(world, {}, () => new FatalError('never'))).toEqual([0])
    expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'FatalError', failure: { message: 'never' } })
  })

  test('nothing else is fatal by its class', async () => {
    const world = open()
    await world.chokaq.enqueue(resize, { id: 'a' })
    const errors = [new TypeError('fetch failed'), new SyntaxError('html'), new RangeError('r')]
    const times = await attemptTimes(world, { retry: { attempts: 4 } }, () => errors.shift() ?? new Error('last'))
    expect(times).toHaveLength(4)
  })

  test('ReviewNeeded parks the job, and its key stays held without expiry', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    const handler = capturing(async () => {
      throw new ReviewNeeded('amounts differ')
    })
    await world.drain([handler])
    expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'ReviewRequested', inDoubt: true })
    await world.runtime.advance(400 * 86_400_000)
    expect(await world.chokaq.enqueue(capture, { paymentId: 'p1' })).toEqual({ outcome: 'already-in-review', id })
  })
})

describe.each(storages)('a review handler on $name', (kind) => {
  const open = worlds(kind)
  const enqueue = async (world: World): Promise<string> => (await world.chokaq.enqueue(capture, { paymentId: 'p1' })).id

  test('is parked by whatever it throws', async () => {
    for (const error of [new Error('no'), new FatalError('no'), 'text', undefined]) {
      const world = open()
      const id = await enqueue(world)
      const handler = unguarded(async () => {
        // A handler may throw anything; that is what is tested.
        // eslint-disable-next-line @typescript-eslint/only-throw-error
        throw error
      })
      expect(await world.drain([handler])).toBe(1)
      expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'Interrupted', inDoubt: true })
    }
  })

  test('runs again after NotExecuted and RetryAfter', async () => {
    const world = open()
    const id = await enqueue(world)
    let count = 0
    const handler = unguarded(async () => {
      count += 1
      if (count === 1) throw new NotExecuted('connection refused')
      if (count === 2) throw new RetryAfter('1m')
      return { chargeId: 'c' }
    })
    await world.drain([handler])
    expect(await world.job(id)).toMatchObject({ state: 'completed', attempt: 3, failureCount: 1 })
  })

  test('is parked by a timeout, and by a shutdown that aborts it', async () => {
    const timedOut = open()
    const first = await enqueue(timedOut)
    await timedOut.drain([unguarded(untilAborted, { timeout: '1s' })])
    expect(await timedOut.job(first)).toMatchObject({ reason: 'Interrupted', inDoubt: true })

    const stopped = open()
    const second = await enqueue(stopped)
    const worker = await stopped.start([unguarded(untilAborted)])
    await stopped.runtime.settle()
    await stopped.stop(worker, { force: true })
    expect(await stopped.job(second)).toMatchObject({ reason: 'Interrupted', inDoubt: true })
  })

  test('goes back free where it answers a shutdown with NotExecuted', async () => {
    const world = open()
    const id = await enqueue(world)
    const handler = unguarded((_p, ctx) =>
      untilAborted(_p, ctx).catch(() => Promise.reject(new NotExecuted('not yet'))),
    )
    const worker = await world.start([handler])
    await world.runtime.settle()
    await world.stop(worker, { force: true })
    expect(await world.job(id)).toMatchObject({ state: 'pending', failureCount: 0 })
  })
})

function untilAborted(_payload: unknown, ctx: { readonly signal: AbortSignal }): Promise<never> {
  return new Promise((_resolve, reject) => {
    const stop = (): void => {
      reject(ctx.signal.reason as Error)
    }
    if (ctx.signal.aborted) stop()
    else ctx.signal.addEventListener('abort', stop)
  })
}
