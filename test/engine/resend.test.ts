// Lost replies of enqueue: the repeat with the same id, the deadline, and what a producer is told.
import { describe, expect, test } from 'vitest'
import type { ChokaQError } from 'chokaq'
import { capture, capturing, resize, resizing } from './contracts.ts'
import { storages } from './storages.ts'
import { codeOf, worlds } from './world.ts'

const id = '0190a0a0-0000-7000-8000-000000000001'

describe.each(storages)('resending on $name', (kind) => {
  const open = worlds(kind)

  test('with the same id is one job, wherever it is by now', async () => {
    const world = open()
    const resend = (): Promise<unknown> => world.chokaq.enqueue(resize, { id: 'a' }, { id })
    expect(await resend()).toEqual({ outcome: 'enqueued', id })
    expect(await resend()).toEqual({ outcome: 'enqueued', id })
    await world.drain([resizing(async () => undefined)])
    expect(await resend()).toEqual({ outcome: 'enqueued', id })
    expect(await world.drain([resizing(async () => undefined)])).toBe(0)
    expect(await world.counter('jobs.enqueued')).toBe(1)
  })

  test('with the same id and another payload is refused', async () => {
    const world = open()
    await world.chokaq.enqueue(resize, { id: 'a' }, { id })
    expect(await codeOf(world.chokaq.enqueue(resize, { id: 'b' }, { id }))).toBe('CHOKAQ_ID_REUSED')
  })

  test('an id in capitals is the same id', async () => {
    const world = open()
    await world.chokaq.enqueue(resize, { id: 'a' }, { id: id.toUpperCase() })
    expect(await world.chokaq.enqueue(resize, { id: 'a' }, { id })).toEqual({ outcome: 'enqueued', id })
  })

  test('is done by the client itself while replies are missing', async () => {
    const world = open()
    let losses = 3
    world.fault = (call) => (call === 'enqueue' && (losses -= 1) >= 0 ? 'after' : 'none')
    const result = await world.runtime.complete(world.chokaq.enqueue(capture, { paymentId: 'p1' }))
    expect(result.outcome).toBe('enqueued')
    expect(await world.counter('jobs.enqueued')).toBe(1)
    expect(world.of('storage.failed')).toHaveLength(3)
    expect(await world.drain([capturing()])).toBe(1)
  })

  test('stops at the deadline with CHOKAQ_ENQUEUE_UNKNOWN and the id, and may go on later', async () => {
    const world = open({ enqueueDeadline: '10s' })
    world.fault = (call) => (call === 'enqueue' ? 'after' : 'none')
    const startMs = world.runtime.clock.monotonicMs()
    const error = (await world.runtime.complete(
      world.chokaq.enqueue(resize, { id: 'a' }).catch((thrown: unknown) => thrown),
    )) as ChokaQError<'CHOKAQ_ENQUEUE_UNKNOWN'>
    expect(error.code).toBe('CHOKAQ_ENQUEUE_UNKNOWN')
    expect(world.runtime.clock.monotonicMs() - startMs).toBeLessThanOrEqual(10_000)
    expect(world.of('storage.failed').length, 'the errors of an outage are few').toBeLessThanOrEqual(20)
    world.fault = () => 'none'
    expect(await world.chokaq.enqueue(resize, { id: 'a' }, { id: error.details.id })).toEqual({
      outcome: 'enqueued',
      id: error.details.id,
    })
    expect(await world.counter('jobs.enqueued')).toBe(1)
  })

  test('names to each caller of a batch its own id', async () => {
    const world = open({ enqueueDeadline: '1s' })
    world.fault = (call) => (call === 'enqueue' ? 'after' : 'none')
    const errors = (await world.runtime.complete(
      Promise.all(['a', 'b', 'c'].map((each) => world.chokaq.enqueue(resize, { id: each }).catch((e: unknown) => e))),
    )) as ChokaQError<'CHOKAQ_ENQUEUE_UNKNOWN'>[]
    world.fault = () => 'none'
    const payloads = await Promise.all(errors.map(async (error) => (await world.job(error.details.id)).payload))
    expect(payloads).toEqual(['{"id":"a"}', '{"id":"b"}', '{"id":"c"}'])
  })

  test('a call that was never sent says that nothing was written', async () => {
    const world = open({ enqueueDeadline: '1s' })
    world.fault = (call) => (call === 'enqueue' ? 'hang' : 'none')
    const first = world.chokaq.enqueue(resize, { id: 'a' }).catch((error: unknown) => error)
    await world.runtime.settle()
    const second = world.chokaq.enqueue(resize, { id: 'b' }).catch((error: unknown) => error)
    const [a, b] = (await world.runtime.complete(Promise.all([first, second]))) as ChokaQError[]
    expect(a?.code).toBe('CHOKAQ_ENQUEUE_UNKNOWN')
    expect(b?.code).toBe('CHOKAQ_STORAGE_BUSY')
    expect(world.runtime.clock.monotonicMs()).toBeLessThanOrEqual(1_000)
  })

  test('an error that no repeat can heal is thrown at once', async () => {
    const world = open()
    await world.chokaq.close()
    expect(await codeOf(world.chokaq.enqueue(resize, { id: 'a' }))).toBe('CHOKAQ_STORAGE_CLOSED')
  })
})

describe.each(storages)('enqueueMany on $name', (kind) => {
  const open = worlds(kind)

  test('answers each payload in order; a refused one costs its neighbours nothing', async () => {
    const world = open()
    await world.chokaq.enqueue(capture, { paymentId: 'held', amount: 1 })
    const answers = await world.chokaq.enqueueMany(capture, [
      { paymentId: 'new' },
      { paymentId: 'held', amount: 1 },
      { paymentId: 'held', amount: 2 },
      { paymentId: '' },
      { paymentId: 'new' },
      { paymentId: 'x', amount: 'no' as never },
      { paymentId: 'last', note: '\ud800' },
      { paymentId: 'fine' },
    ])
    expect(answers.map(({ outcome }) => outcome)).toEqual([
      'enqueued',
      'already-active',
      'refused',
      'refused',
      'already-active',
      'refused',
      'refused',
      'enqueued',
    ])
    const codes = answers.flatMap((answer) =>
      answer.outcome === 'refused' ? [(answer.error as ChokaQError).code] : [],
    )
    expect(codes).toEqual(['CHOKAQ_KEY_REUSED', 'CHOKAQ_EMPTY_KEY', 'CHOKAQ_PAYLOAD_INVALID', 'CHOKAQ_NOT_JSON'])
    expect(await world.counter('jobs.enqueued')).toBe(3)
    // The refused one, too, met a holder.
    expect(await world.counter('jobs.deduplicated')).toBe(3)
  })

  test('stores thousands, and refuses more than maxBatchCount', async () => {
    const world = open({ maxBatchCount: 2_500 })
    const payloads = Array.from({ length: 2_500 }, (_, i) => ({ id: String(i) }))
    const answers = await world.chokaq.enqueueMany(resize, payloads, { priority: 3 })
    expect(new Set(answers.map((answer) => 'id' in answer && answer.id)).size).toBe(2_500)
    expect(await world.counter('jobs.enqueued')).toBe(2_500)
    expect(await codeOf(world.chokaq.enqueueMany(resize, [...payloads, { id: 'x' }]))).toBe('CHOKAQ_OPTION_INVALID')
    expect(await codeOf(world.chokaq.enqueueMany(resize, payloads, { id }))).toBe('CHOKAQ_OPTION_INVALID')
    expect(await codeOf(world.chokaq.enqueueMany(resize, payloads, { tx: {} } as never))).toBe('CHOKAQ_CONFIG_INVALID')
  })

  test('answers an unknown fate row by row, each with the id to repeat', async () => {
    const world = open({ enqueueDeadline: '1s' })
    const payloads = Array.from({ length: 1_200 }, (_, i) => ({ id: String(i) }))
    let calls = 0
    // The first thousand are stored and answered; of the rest every reply is lost.
    world.fault = (call) => (call === 'enqueue' && (calls += 1) > 1 ? 'after' : 'none')
    const answers = await world.runtime.complete(world.chokaq.enqueueMany(resize, payloads))
    expect(answers.slice(0, 1_000).every(({ outcome }) => outcome === 'enqueued')).toBe(true)
    world.fault = () => 'none'
    const last = answers.at(-1)
    if (last?.outcome !== 'refused') throw new Error('the last row was answered')
    const error = last.error as ChokaQError<'CHOKAQ_ENQUEUE_UNKNOWN'>
    expect(error.code).toBe('CHOKAQ_ENQUEUE_UNKNOWN')
    expect((await world.job(error.details.id)).payload).toBe('{"id":"1199"}')
  })
})
