// What a producer may ask for, what it is answered, and what is refused before anything is written.
import { defineJob, type EnqueueOptions } from 'chokaq'
import { z } from 'zod'
import { describe, expect, test } from 'vitest'
import { capture, capturing, resize, resizing } from './contracts.ts'
import { storages } from './storages.ts'
import { codeOf, worlds } from './world.ts'

const day = 86_400_000

describe.each(storages)('enqueue on $name', (kind) => {
  const open = worlds(kind)

  test('stores what was asked for', async () => {
    const world = open()
    const { id, outcome } = await world.chokaq.enqueue(
      resize,
      { id: 'p1' },
      { priority: -7, queue: 'heavy', tags: ['a', 'b'], tenant: 'acme', delay: '1h' },
    )
    expect(outcome).toBe('enqueued')
    expect(await world.job(id)).toMatchObject({
      pillar: 'hot',
      state: 'scheduled',
      type: 'image.resize.v1',
      queue: 'heavy',
      payload: '{"id":"p1"}',
      priority: -7,
      tags: ['a', 'b'],
      tenant: 'acme',
      runAtMs: world.runtime.clock.nowMs() + 3_600_000,
      attempt: 0,
    })
    expect(world.of('job.enqueued')).toEqual([
      { name: 'job.enqueued', jobId: id, type: 'image.resize.v1', queue: 'heavy' },
    ])
  })

  test('runs at a time, and a past time means now', async () => {
    const world = open()
    const nowMs = world.runtime.clock.nowMs()
    const later = await world.chokaq.enqueue(resize, { id: 'a' }, { runAt: new Date(nowMs + 5_000) })
    const past = await world.chokaq.enqueue(resize, { id: 'b' }, { runAt: new Date(nowMs - day) })
    expect(await world.job(later.id)).toMatchObject({ state: 'scheduled', runAtMs: nowMs + 5_000 })
    expect(await world.state(past.id)).toBe('pending')
  })

  test('waits longer than a 32-bit timer can', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' }, { delay: 2 ** 31 + 1 })
    const ran: number[] = []
    const startMs = world.runtime.clock.monotonicMs()
    await world.drain([resizing(async () => void ran.push(world.runtime.clock.monotonicMs() - startMs))])
    expect(ran).toEqual([2 ** 31 + 1])
    expect(await world.state(id)).toBe('completed')
  })

  test('names of queues may hold quotes, emoji and what looks like SQL', async () => {
    const world = open()
    for (const queue of [`it's "quoted"`, 'émile 🚀', "'; DROP TABLE chokaq_jobs_hot; --", '%_\\', 'a'.repeat(128)]) {
      const { id } = await world.chokaq.enqueue(resize, { id: 'a' }, { queue })
      expect(await world.job(id)).toMatchObject({ queue, state: 'pending' })
      await world.drain([resizing(async () => undefined)], { queues: [queue] })
      expect(await world.state(id)).toBe('completed')
    }
  })

  test('keeps a payload exactly: __proto__, NUL and member order included', async () => {
    const world = open()
    const any = defineJob({ type: 'any.v1', payload: z.unknown() })
    const payload: unknown = JSON.parse('{"b":1,"a":"nul:\\u0000","__proto__":{"polluted":true},"constructor":null}')
    const { id } = await world.chokaq.enqueue(any, payload)
    expect((await world.job(id)).payload).toBe(
      '{"b":1,"a":"nul:\\u0000","__proto__":{"polluted":true},"constructor":null}',
    )
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  })

  test('is lazy: a client that is never used opens nothing and sets no timer', async () => {
    const world = open()
    await world.runtime.advance(60_000)
    expect(world.runtime.pendingTimerCount()).toBe(0)
  })
})

const refused: readonly { what: string; options: EnqueueOptions; code?: string }[] = [
  { what: 'a priority above 1000', options: { priority: 1001 } },
  { what: 'a priority below -1000', options: { priority: -1001 } },
  { what: 'a priority that is no whole number', options: { priority: 0.5 } },
  { what: 'a priority that is NaN', options: { priority: Number.NaN } },
  { what: 'a negative delay', options: { delay: -1 }, code: 'CHOKAQ_DURATION_INVALID' },
  { what: 'a delay that is NaN', options: { delay: Number.NaN }, code: 'CHOKAQ_DURATION_INVALID' },
  { what: 'a delay that is no duration', options: { delay: 'soon' as never }, code: 'CHOKAQ_DURATION_INVALID' },
  { what: 'a delay over maxDelay', options: { delay: 30 * day + 1 } },
  { what: 'a time over maxDelay', options: { runAt: new Date(Date.UTC(2027, 0, 1)) } },
  { what: 'an invalid Date', options: { runAt: new Date(Number.NaN) } },
  { what: 'a delay and a time', options: { delay: 1, runAt: new Date(Date.UTC(2026, 0, 2)) } },
  { what: 'an empty queue', options: { queue: '' } },
  { what: 'a queue with a newline', options: { queue: 'a\nb' } },
  { what: 'a queue with half a surrogate pair', options: { queue: 'a\ud800' } },
  { what: 'a queue of 129 characters', options: { queue: 'a'.repeat(129) } },
  { what: 'an empty tenant', options: { tenant: '' } },
  { what: 'eleven tags', options: { tags: Array.from({ length: 11 }, (_, i) => `t${i}`) } },
  { what: 'a tag of 101 characters', options: { tags: ['a'.repeat(101)] } },
  { what: 'tags that are no list', options: { tags: 'a' as never } },
  { what: 'an id that is no UUID', options: { id: '42' } },
  { what: 'an unknown option', options: { prioriti: 1 } as never, code: 'CHOKAQ_CONFIG_INVALID' },
  { what: 'an option of children only', options: { item: 'a' } as never, code: 'CHOKAQ_CONFIG_INVALID' },
]

const circular: Record<string, unknown> = {}
circular['self'] = circular

const badPayloads: readonly { what: string; payload: unknown; code: string }[] = [
  { what: 'a number that is NaN', payload: { a: Number.NaN }, code: 'CHOKAQ_NOT_JSON' },
  { what: 'a BigInt', payload: { a: { b: 1n } }, code: 'CHOKAQ_NOT_JSON' },
  { what: 'a circular object', payload: circular, code: 'CHOKAQ_NOT_JSON' },
  { what: 'half a surrogate pair', payload: { a: '\ud800' }, code: 'CHOKAQ_NOT_JSON' },
  { what: 'a function', payload: { a: () => 1 }, code: 'CHOKAQ_NOT_JSON' },
  { what: 'a text of more than 1 MB', payload: { a: 'x'.repeat(1_000_000) }, code: 'CHOKAQ_TOO_LARGE' },
  {
    what: 'a text of less than 1 MB that is more in UTF-8',
    payload: { a: 'é'.repeat(600_000) },
    code: 'CHOKAQ_TOO_LARGE',
  },
]

describe.each(storages)('enqueue on $name refuses', (kind) => {
  const open = worlds(kind)

  test.each(refused)('$what', async ({ options, code = 'CHOKAQ_OPTION_INVALID' }) => {
    const world = open()
    expect(await codeOf(world.chokaq.enqueue(resize, { id: 'p1' }, options))).toBe(code)
    expect((await world.chokaq.jobs.list('hot')).jobs).toEqual([])
  })

  test.each(badPayloads)('a payload with $what', async ({ payload, code }) => {
    const world = open()
    const any = defineJob({ type: 'any.v1', payload: z.unknown() })
    expect(await codeOf(world.chokaq.enqueue(any, payload))).toBe(code)
    expect((await world.chokaq.jobs.list('hot')).jobs).toEqual([])
  })

  test('a payload that fails its schema, naming the path', async () => {
    const world = open()
    const call = world.chokaq.enqueue(resize, { id: 7 } as never)
    await expect(call).rejects.toThrow(/image\.resize\.v1" fails its schema:\n- \$\.id/)
  })

  test('a misspelt option with what was meant', async () => {
    const world = open()
    const call = world.chokaq.enqueue(resize, { id: 'a' }, { prioriti: 1 } as never)
    await expect(call).rejects.toThrow(/priority/)
  })

  test('a job that defineJob did not make', async () => {
    const world = open()
    const copy = { ...resize } as typeof resize
    expect(await codeOf(world.chokaq.enqueue(copy, { id: 'a' }))).toBe('CHOKAQ_CONTRACT_INVALID')
  })

  test.each(['', '   ', 'undefined', 'null', '[object Object]'])('the key %j, and counts it', async (paymentId) => {
    const world = open()
    expect(await codeOf(world.chokaq.enqueue(capture, { paymentId }))).toBe('CHOKAQ_EMPTY_KEY')
    expect((await world.chokaq.jobs.list('hot')).jobs).toEqual([])
    expect(await world.counter('idempotency.claims', 'empty_key')).toBe(1)
    expect(world.of('idempotency.claim')).toMatchObject([{ outcome: 'empty_key', type: 'payment.capture.v1' }])
  })

  test('an empty key also while the storage cannot count it', async () => {
    const world = open()
    world.fault = (call) => (call === 'count' ? 'before' : 'none')
    expect(await codeOf(world.chokaq.enqueue(capture, { paymentId: '' }))).toBe('CHOKAQ_EMPTY_KEY')
  })

  test('everything after close, with one code', async () => {
    const world = open()
    await world.chokaq.ready()
    await world.chokaq.close()
    expect(await codeOf(world.chokaq.enqueue(resize, { id: 'a' }))).toBe('CHOKAQ_STORAGE_CLOSED')
  })
})

describe.each(storages)('keys on $name', (kind) => {
  const open = worlds(kind)

  test('of 10,000 characters are told apart at their last one', async () => {
    const world = open()
    const long = 'k'.repeat(9_999)
    const a = await world.chokaq.enqueue(capture, { paymentId: `${long}a` })
    const b = await world.chokaq.enqueue(capture, { paymentId: `${long}b` })
    const again = await world.chokaq.enqueue(capture, { paymentId: `${long}a` })
    expect([a.outcome, b.outcome, again.outcome]).toEqual(['enqueued', 'enqueued', 'already-active'])
    expect(again.id).toBe(a.id)
  })

  test('of two tenants are two keys', async () => {
    const world = open()
    const outcomes = []
    for (const tenant of ['acme', 'beta', 'acme']) {
      outcomes.push((await world.chokaq.enqueue(capture, { paymentId: 'p1' }, { tenant })).outcome)
    }
    expect(outcomes).toEqual(['enqueued', 'enqueued', 'already-active'])
  })

  test('are shared by the versions of a type', async () => {
    const world = open()
    const second = defineJob({
      type: 'payment.capture.v2',
      payload: z.object({ paymentId: z.string(), currency: z.string() }),
      key: (p) => p.paymentId,
      duplicateWindow: '7d',
      sameWhen: () => 1,
    })
    const first = await world.chokaq.enqueue(capture, { paymentId: 'p1', amount: 1 })
    expect(await world.chokaq.enqueue(second, { paymentId: 'p1', currency: 'EUR' })).toEqual({
      outcome: 'already-active',
      id: first.id,
    })
  })

  test('with another payload are refused, naming paths and no values', async () => {
    const world = open()
    await world.chokaq.enqueue(capture, { paymentId: 'p1', amount: 123_456 })
    const call = world.chokaq.enqueue(capture, { paymentId: 'p1', amount: 654_321 })
    await expect(call).rejects.toMatchObject({ code: 'CHOKAQ_KEY_REUSED' })
    await expect(call).rejects.not.toThrow(/123456|654321/)
  })

  test('compare what sameWhen says, not the rest of the payload', async () => {
    const world = open()
    const first = await world.chokaq.enqueue(capture, { paymentId: 'p1', amount: 1, note: 'a' })
    expect(await world.chokaq.enqueue(capture, { paymentId: 'p1', note: 'b' })).toEqual({
      outcome: 'already-active',
      id: first.id,
    })
  })

  test('of a key function that throws or changes its mind are refused', async () => {
    const world = open()
    let count = 0
    const fickle = defineJob({
      type: 'fickle.v1',
      payload: z.object({}),
      key: () => `k${(count += 1)}`,
      duplicateWindow: '1d',
    })
    const broken = defineJob({
      type: 'broken.v1',
      payload: z.object({}),
      key: (): string => {
        throw new RangeError('no')
      },
      duplicateWindow: '1d',
    })
    expect(await codeOf(world.chokaq.enqueue(fickle, {}))).toBe('CHOKAQ_CONTRACT_INVALID')
    expect(await codeOf(world.chokaq.enqueue(broken, {}))).toBe('CHOKAQ_KEY_THROWN')
  })

  test('are computed from what the schema gives, on both sides', async () => {
    const world = open()
    const trimmed = defineJob({
      type: 'trimmed.v1',
      payload: z.object({ name: z.string().trim().toLowerCase() }),
      key: (p) => p.name,
      duplicateWindow: '1d',
      sameWhen: (p) => p.name,
    })
    const first = await world.chokaq.enqueue(trimmed, { name: ' Ada ' })
    const second = await world.chokaq.enqueue(trimmed, { name: 'ada' })
    expect(second).toEqual({ outcome: 'already-active', id: first.id })
    expect((await world.job(first.id)).payload).toBe('{"name":" Ada "}')
  })

  test("'job-id' makes every enqueue an operation of its own", async () => {
    const world = open()
    const each = defineJob({ type: 'each.v1', payload: z.object({}), key: 'job-id' })
    const [a, b] = [await world.chokaq.enqueue(each, {}), await world.chokaq.enqueue(each, {})]
    expect([a.outcome, b.outcome]).toEqual(['enqueued', 'enqueued'])
    expect((await world.job(a.id)).keyPrefix).toBe(a.id)
  })

  test('of a completed job answer with the stored result', async () => {
    const world = open()
    const first = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    await world.drain([capturing()])
    expect(await world.chokaq.enqueue(capture, { paymentId: 'p1' })).toEqual({
      outcome: 'already-completed',
      id: first.id,
      result: { chargeId: 'ch_p1' },
    })
    expect(world.of('job.deduplicated')).toMatchObject([{ answer: 'completed', holderId: first.id }])
  })
})
