// What users of 'chokaq/testing' rely on.
import { createChokaQ, defineJob } from 'chokaq'
import { sqlite } from 'chokaq/sqlite'
import { assertEnqueued, createFakeRuntime, drain, testHandler, TestingError } from 'chokaq/testing'
import { createWorker, defineHandler, NotExecuted, ReviewNeeded, type Ctx } from 'chokaq/worker'
import { z } from 'zod'
import { describe, expect, test } from 'vitest'

const mail = defineJob({
  type: 'mail.send.v1',
  payload: z.object({ to: z.string(), tags: z.array(z.string()).optional() }),
})
const signUp = defineJob({
  type: 'user.sign-up.v1',
  payload: z.object({ email: z.string().trim() }),
  result: z.object({ welcomed: z.boolean() }),
  key: (p) => p.email,
  duplicateWindow: '1d',
})

const answers = { sideEffects: 'unguarded', whenInterrupted: 'review' } as const
const welcome = (run: (p: { email: string }, ctx: Ctx) => Promise<{ welcomed: boolean }>) =>
  defineHandler(signUp, { ...answers, run })

describe('testHandler', () => {
  test('gives the result and the children of a handler, and its payload as it will be read', async () => {
    const seen: unknown[] = []
    const handler = welcome(async (p, ctx) => {
      seen.push(p.email, ctx.attempt, ctx.key)
      await ctx.enqueue(mail, { to: p.email })
      return { welcomed: true }
    })
    expect(await testHandler(handler, signUp, { email: ' ada@example.org ' })).toEqual({
      outcome: 'completed',
      result: { welcomed: true },
      effects: [],
      enqueued: [{ type: 'mail.send.v1', payload: { to: 'ada@example.org' } }],
    })
    expect(seen).toEqual(['ada@example.org', 1, 'ada@example.org'])
  })

  test('tells a failure from a review', async () => {
    const throwing = (error: unknown) =>
      welcome(async () => {
        throw error
      })
    const outcomes = []
    for (const error of [new Error('no'), new ReviewNeeded('look'), new NotExecuted('refused')]) {
      outcomes.push((await testHandler(throwing(error), signUp, { email: 'a' })).outcome)
    }
    expect(outcomes).toEqual(['review', 'review', 'failed'])
    expect((await testHandler(throwing(new Error('no')), signUp, { email: 'a' })).failure?.message).toBe('no')
  })

  test('checks a result by its schema, wherever the handler completes', async () => {
    const wrong = { welcomed: 'yes' } as never
    const db = {} as never
    const ways: readonly ((ctx: Ctx) => Promise<{ welcomed: boolean }>)[] = [
      async () => wrong,
      async (ctx) => ctx.complete(db, wrong) as never,
      async (ctx) => ctx.completeSync(db, wrong) as never,
    ]
    for (const way of ways) {
      const run = await testHandler(
        welcome((_p, ctx) => way(ctx)),
        signUp,
        { email: 'a' },
      )
      expect(run.failure?.code).toBe('CHOKAQ_RESULT_INVALID')
    }
    const right = welcome(async (_p, ctx) => ctx.completeSync(db, { welcomed: true }) as never)
    expect(await testHandler(right, signUp, { email: 'a' })).toMatchObject({ result: { welcomed: true } })
  })

  test('refuses what enqueue would refuse, and a handler of another job', async () => {
    const handler = welcome(async () => ({ welcomed: true }))
    await expect(testHandler(handler, signUp, { email: 7 as never })).rejects.toMatchObject({
      code: 'CHOKAQ_PAYLOAD_INVALID',
    })
    await expect(testHandler(handler, signUp, { email: '' })).rejects.toMatchObject({ code: 'CHOKAQ_EMPTY_KEY' })
    await expect(testHandler(handler, mail, { to: 'a' })).rejects.toThrow(TestingError)
  })
})

describe('drain', () => {
  test('runs everything, retries and delays included, without waiting', async () => {
    const runtime = createFakeRuntime()
    const chokaq = createChokaQ({ storage: sqlite(':memory:'), runtime })
    let runs = 0
    const failing = defineHandler(mail, {
      sideEffects: 'none',
      run() {
        runs += 1
        return Promise.reject(new Error('no'))
      },
    })
    await chokaq.enqueue(mail, { to: 'ada' }, { delay: '1h' })
    expect(await drain(createWorker({ chokaq, handlers: [failing] }), { runtime })).toBe(22)
    expect(runs).toBe(22)
    await chokaq.close()
  })

  test('without a fake runtime leaves what waits for its time', async () => {
    const chokaq = createChokaQ({ storage: sqlite(':memory:') })
    const worker = createWorker({
      chokaq,
      handlers: [defineHandler(mail, { sideEffects: 'none', run: async () => undefined })],
    })
    await chokaq.enqueue(mail, { to: 'now' })
    await chokaq.enqueue(mail, { to: 'later' }, { delay: '1h' })
    expect(await drain(worker)).toBe(1)
    await chokaq.close()
  })

  test('gives up on a job that never ends', async () => {
    const runtime = createFakeRuntime()
    const chokaq = createChokaQ({ storage: sqlite(':memory:'), runtime })
    const again = defineHandler(mail, {
      sideEffects: 'none',
      async run(p, ctx) {
        await ctx.enqueue(mail, p)
      },
    })
    await chokaq.enqueue(mail, { to: 'ada' })
    const worker = createWorker({ chokaq, handlers: [again] })
    await expect(drain(worker, { runtime, maxRounds: 5 })).rejects.toThrow(/after 5 rounds; 5 attempts/)
    await chokaq.close()
  })
})

describe('assertEnqueued', () => {
  test('finds a job by a part of its payload, wherever it is by now', async () => {
    const runtime = createFakeRuntime()
    const chokaq = createChokaQ({ storage: sqlite(':memory:'), runtime })
    await chokaq.enqueue(mail, { to: 'ada', tags: ['a', 'b'] })
    expect(await assertEnqueued(chokaq, mail, { to: 'ada' })).toMatchObject({ state: 'pending' })
    await drain(
      createWorker({ chokaq, handlers: [defineHandler(mail, { sideEffects: 'none', run: async () => undefined })] }),
    )
    expect(await assertEnqueued(chokaq, mail)).toMatchObject({ state: 'completed' })
    await expect(assertEnqueued(chokaq, mail, { tags: ['a'] })).rejects.toThrow(
      /Found 1 of this type:\n {2}\{"to":"ada"/,
    )
    await expect(assertEnqueued(chokaq, mail, { to: 'bob' })).rejects.toThrow(TestingError)
    await expect(assertEnqueued(chokaq, signUp)).rejects.toThrow(/There is none of this type/)
    await chokaq.close()
  })
})
