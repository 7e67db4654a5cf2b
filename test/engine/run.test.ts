// What a handler is given, what it may return and what it may throw.
import { defineJob } from 'chokaq'
import { defineHandler, type Ctx } from 'chokaq/worker'
import { z } from 'zod'
import { describe, expect, test } from 'vitest'
import { capture, capturing, resize, resizing } from './contracts.ts'
import { storages } from './storages.ts'
import { gate, worlds } from './world.ts'

const once = { retry: { attempts: 1 } }

describe.each(storages)('a run on $name', (kind) => {
  const open = worlds(kind)

  test('is given the payload, and its ctx says which run it is', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    const seen: unknown[] = []
    let ctxOf: Ctx | undefined
    const handler = capturing(async (p, ctx) => {
      ctxOf = ctx
      seen.push(p, ctx.jobId, ctx.key, ctx.attempt, ctx.deadline.getTime(), ctx.signal.aborted)
      ctx.log('hello', { a: 1 })
      return { chargeId: 'c' }
    })
    const startMs = world.runtime.clock.nowMs()
    expect(await world.drain([handler])).toBe(1)
    expect(seen).toEqual([{ paymentId: 'p1', amount: 1 }, id, 'p1', 1, startMs + 15 * 60_000, false])
    expect(world.of('job.log')).toMatchObject([{ jobId: id, attempt: 1, message: 'hello', fields: { a: 1 } }])
    ctxOf?.log('too late')
    expect(world.of('job.log')).toHaveLength(1)
  })

  test('completes with marker, result and counters', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    await world.drain([capturing()])
    expect(await world.job(id)).toMatchObject({
      pillar: 'archive',
      state: 'completed',
      result: '{"chargeId":"ch_p1"}',
      attempt: 1,
      failureCount: 0,
    })
    expect(await world.counter('jobs.enqueued')).toBe(1)
    expect(await world.counter('jobs.completed')).toBe(1)
    expect(await world.counter('idempotency.claims', 'claimed')).toBe(1)
    expect(await world.counter('idempotency.claims', 'completed')).toBe(1)
    expect(world.of('idempotency.claim').map(({ outcome }) => outcome)).toEqual(['claimed', 'completed'])
    expect(world.of('job.started')).toMatchObject([{ jobId: id, attempt: 1, queueLagMs: 0, crashCount: 0 }])
    expect(world.of('job.completed')).toMatchObject([{ jobId: id, attempt: 1, repeated: false }])
  })

  test('sees a Date as the text that JSON makes of it, on every attempt', async () => {
    const world = open()
    const dated = defineJob({ type: 'dated.v1', payload: z.object({ at: z.iso.datetime().pipe(z.coerce.date()) }) })
    await world.chokaq.enqueue(dated, { at: '2026-01-02T03:04:05.000Z' })
    const seen: unknown[] = []
    const handler = defineHandler(dated, {
      sideEffects: 'none',
      async run(p, ctx) {
        seen.push(p.at)
        if (ctx.attempt === 1) throw new Error('again')
      },
    })
    await world.drain([handler])
    expect(seen).toEqual([new Date('2026-01-02T03:04:05.000Z'), new Date('2026-01-02T03:04:05.000Z')])
  })

  test('of a type that no worker knows waits, and holds up nobody', async () => {
    const world = open()
    const other = defineJob({ type: 'other.v1', payload: z.object({}) })
    const unknown = await world.chokaq.enqueue(other, {}, { priority: 1000 })
    const known = await world.chokaq.enqueue(resize, { id: 'a' })
    await world.drain([resizing(async () => undefined)])
    expect(await world.state(unknown.id)).toBe('pending')
    expect(await world.state(known.id)).toBe('completed')
  })

  test('goes by priority, then by age', async () => {
    const world = open()
    const order: string[] = []
    for (const [id, priority] of [
      ['first', 0],
      ['second', 0],
      ['low', -1],
      ['high', 5],
    ] as const) {
      await world.chokaq.enqueue(resize, { id }, { priority })
    }
    await world.drain([resizing(async (p) => void order.push(p.id))], { concurrency: 1 })
    expect(order).toEqual(['high', 'first', 'second', 'low'])
  })

  test('is refused where the stored payload no longer fits the schema', async () => {
    const world = open()
    const old = defineJob({ type: 'image.resize.v1', payload: z.object({ name: z.string() }) })
    const { id } = await world.chokaq.enqueue(old, { name: 'x' })
    let ran = false
    await world.drain([resizing(async () => void (ran = true))])
    expect(ran).toBe(false)
    expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'Rejected', failureCount: 0 })
    expect((await world.job(id)).failure?.message).toMatch(/fails its schema/)
  })
})

const circular: Record<string, unknown> = {}
circular['self'] = circular

const results: readonly { what: string; value: unknown; stored: string | null }[] = [
  { what: 'undefined', value: undefined, stored: null },
  { what: 'null', value: null, stored: 'null' },
  { what: '0', value: 0, stored: '0' },
  { what: 'an empty text', value: '', stored: '""' },
  { what: 'false', value: false, stored: 'false' },
  { what: 'a Date', value: new Date(0), stored: '"1970-01-01T00:00:00.000Z"' },
  { what: 'undefined members', value: { a: undefined, b: [undefined] }, stored: '{"b":[null]}' },
  { what: 'a NUL character', value: 'a\u0000b', stored: '"a\\u0000b"' },
  { what: 'a member __proto__', value: JSON.parse('{"__proto__":1}'), stored: '{"__proto__":1}' },
]

const badResults: readonly { what: string; value: unknown; message: RegExp }[] = [
  { what: 'NaN', value: Number.NaN, message: /NaN/ },
  { what: 'a BigInt', value: { a: 1n }, message: /\$\.a/ },
  { what: 'a circular object', value: circular, message: /circular/ },
  { what: 'a function', value: () => 1, message: /function/ },
  { what: 'a Map', value: new Map(), message: /Map/ },
  { what: 'half a surrogate pair', value: '\ud800', message: /surrogate/ },
  { what: 'more than 1 MB', value: 'x'.repeat(1_000_001), message: /limit is 1000000/ },
]

describe.each(storages)('a result on $name', (kind) => {
  const open = worlds(kind)

  test.each(results)('of $what is stored', async ({ value, stored }) => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    await world.drain([resizing(async () => value)])
    expect(await world.job(id)).toMatchObject({ state: 'completed', result: stored })
  })

  test.each(badResults)('of $what is a failure like any other', async ({ value, message }) => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    const healthy = await world.chokaq.enqueue(resize, { id: 'b' })
    await world.drain([resizing(async (p) => (p.id === 'a' ? value : 'fine'), once)])
    expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'MaxRetriesExceeded', failureCount: 1 })
    expect((await world.job(id)).failure?.message).toMatch(message)
    expect(await world.state(healthy.id)).toBe('completed')
  })

  test('is checked by its schema, and stored as the schema gives it', async () => {
    const world = open()
    const good = await world.chokaq.enqueue(capture, { paymentId: 'good' })
    const bad = await world.chokaq.enqueue(capture, { paymentId: 'bad' })
    const handler = capturing(
      async (p) => (p.paymentId === 'good' ? { chargeId: 'c', secret: 1 } : { charge: 1 }),
      once,
    )
    await world.drain([handler])
    expect((await world.job(good.id)).result).toBe('{"chargeId":"c"}')
    expect(await world.job(bad.id)).toMatchObject({ state: 'dead', failure: { code: 'CHOKAQ_RESULT_INVALID' } })
  })
})

class Unkind extends Error {
  override get message(): string {
    throw new Error('even the message throws')
  }
}

const chain = new Error('outer', { cause: new TypeError('inner') })
chain.cause = chain

const thrown: readonly { what: string; value: unknown; failure: object }[] = [
  { what: 'an error', value: new TypeError('bad'), failure: { name: 'TypeError', message: 'bad' } },
  { what: 'undefined', value: undefined, failure: { message: 'undefined', thrown: 'undefined' } },
  { what: 'null', value: null, failure: { message: 'null', thrown: 'null' } },
  { what: 'a text', value: 'oops', failure: { message: 'oops', thrown: 'string' } },
  { what: 'an empty text', value: '', failure: { message: '', thrown: 'string' } },
  { what: 'zero', value: 0, failure: { thrown: 'number' } },
  { what: 'a symbol', value: Symbol('s'), failure: { thrown: 'symbol' } },
  { what: 'a function', value: () => 1, failure: { thrown: 'function' } },
  { what: 'a frozen object', value: Object.freeze({ a: 1 }), failure: { thrown: 'object' } },
  { what: 'a circular object', value: circular, failure: { thrown: 'object' } },
  { what: 'a cause that is the error itself', value: chain, failure: { message: 'outer' } },
  {
    what: 'an AggregateError',
    value: new AggregateError([new Error('one'), new Error('two')], 'both'),
    failure: { message: 'both', causes: [{ message: 'one' }, { message: 'two' }] },
  },
  {
    what: 'a proxy whose traps throw',
    value: new Proxy(
      {},
      {
        get() {
          throw new Error('trap')
        },
        has() {
          throw new Error('trap')
        },
        getPrototypeOf() {
          throw new Error('trap')
        },
      },
    ),
    failure: { thrown: 'object' },
  },
  { what: 'an error whose message throws', value: new Unkind(), failure: {} },
  { what: 'a NUL and half a surrogate pair', value: new Error('a\u0000b\ud800'), failure: {} },
  { what: 'a message of a megabyte', value: new Error('x'.repeat(1_000_000)), failure: {} },
]

describe.each(storages)('throwing on $name', (kind) => {
  const open = worlds(kind)

  test.each(thrown)('$what is recorded, and the worker goes on', async ({ value, failure }) => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    const healthy = await world.chokaq.enqueue(resize, { id: 'b' })
    const handler = resizing(async (p) => {
      if (p.id === 'a') throw value
    }, once)
    await world.drain([handler])
    expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'MaxRetriesExceeded', failure })
    expect((await world.job(id)).failure?.message.length).toBeLessThanOrEqual(2_000)
    expect(await world.state(healthy.id)).toBe('completed')
  })

  test('before the first await is a failure like any other', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    const handler = resizing(() => {
      throw new Error('at once')
    }, once)
    await world.drain([handler])
    expect(await world.job(id)).toMatchObject({ state: 'dead', failure: { message: 'at once' } })
  })

  test('after the attempt was abandoned changes nothing and ends no process', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    const late = gate()
    const handler = resizing(() => late.promise, { ...once, timeout: '1s' })
    await world.drain([handler])
    expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'Timeout' })
    late.fail(new Error('too late'))
    await world.runtime.settle()
    expect(await world.job(id)).toMatchObject({ failure: { code: 'CHOKAQ_JOB_TIMEOUT' }, failureCount: 1 })
  })

  test('listeners that throw or reject cost no job its outcome', async () => {
    const world = open()
    world.chokaq.subscribe(() => {
      throw new Error('listener')
    })
    // A listener of JavaScript code may well be asynchronous.
    // eslint-disable-next-line @typescript-eslint/no-misused-promises
    world.chokaq.subscribe(async () => {
      throw new Error('asynchronous listener')
    })
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    await world.drain([resizing(async () => 1)])
    expect(await world.state(id)).toBe('completed')
    expect(world.of('job.completed')).toHaveLength(1)
  })
})
