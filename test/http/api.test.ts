import { defineJob, type JobRecord } from 'chokaq'
import { api, type ApiOptions } from 'chokaq/http'
import { createWorker, defineHandler } from 'chokaq/worker'
import { describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { answerOf, counts, openChokaQ } from './receiving.ts'

const createOrder = defineJob({
  type: 'order.create.v1',
  payload: z.object({ requestKey: z.string(), item: z.string() }),
  result: z.object({ orderId: z.string() }),
  key: (p) => p.requestKey,
  duplicateWindow: '7d',
})
type Options = ApiOptions<typeof createOrder.payload>

function openApi(replace: Partial<Options> = {}) {
  const chokaq = openChokaQ()
  const answer = api({
    chokaq,
    job: createOrder,
    payload: (body, requestKey) => ({ requestKey, item: (body as { item: string }).item }),
    ...replace,
  })
  const post = async (
    key: string | undefined,
    body: unknown = { item: 'book' },
    headers: Record<string, string> = {},
  ) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const keyHeader: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key }
    const all = { 'content-type': 'application/json', ...keyHeader, ...headers }
    return answer(new Request('http://api.test/orders', { method: 'POST', body: text, headers: all }))
  }
  return { chokaq, post }
}

describe('an endpoint with the Idempotency-Key header', () => {
  it('goes from 202 over 409 to 200 with the stored result, and 422 for another body', async () => {
    const { chokaq, post } = openApi()
    const handler = defineHandler(createOrder, {
      sideEffects: 'none',
      run: async (p) => ({ orderId: `order-of-${p.item}` }),
    })
    const worker = createWorker({ chokaq, handlers: [handler] })

    const first = await answerOf(await post('"k1"'))
    const { id } = first.body
    expect(first).toEqual({ status: 202, body: { id, outcome: 'enqueued' } })

    const during = await post('"k1"')
    expect([during.status, during.headers.get('retry-after')]).toEqual([409, '1'])
    expect(during.headers.get('content-type')).toBe('application/problem+json')
    expect(await during.json()).toMatchObject({ status: 409, code: 'in-progress', id, type: 'about:blank' })

    await worker.tick()
    const repeat = await answerOf(await post('"k1"'))
    expect(repeat).toEqual({
      status: 200,
      body: { id, outcome: 'already-completed', result: { orderId: 'order-of-book' } },
    })

    const other = await post('"k1"', { item: 'pen' })
    expect(other.headers.get('content-type')).toBe('application/problem+json')
    expect(await answerOf(other)).toMatchObject({ status: 422, body: { status: 422, code: 'key-reused' } })
    expect(await counts(chokaq)).toEqual({ hot: 0, archive: 1, dlq: 0 })
    await worker.stop()
  })

  it('runs one of 50 concurrent requests', async () => {
    const { chokaq, post } = openApi()
    const statuses = await Promise.all(Array.from({ length: 50 }, async () => (await post('k1')).status))
    expect(statuses.toSorted()).toEqual([202, ...Array.from({ length: 49 }, () => 409)])
    expect((await counts(chokaq)).hot).toBe(1)
  })

  it('takes equal bodies under two keys as two operations', async () => {
    const { chokaq, post } = openApi()
    expect([(await post('k1')).status, (await post('k2')).status]).toEqual([202, 202])
    expect((await counts(chokaq)).hot).toBe(2)
  })

  it('takes a quoted and a bare key for the same', async () => {
    const { post } = openApi()
    expect([(await post('"k1"')).status, (await post('k1')).status]).toEqual([202, 409])
  })

  it.each([
    [undefined, 'idempotency-key-missing'],
    ['""', 'idempotency-key-invalid'],
    ['k'.repeat(256), 'idempotency-key-invalid'],
    ['a, b', 'idempotency-key-invalid'],
  ])('is 400 for the header %j, and never makes a key up', async (key, code) => {
    const { chokaq, post } = openApi({ documentation: 'https://api.test/idempotency' })
    const response = await post(key)
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    expect(await answerOf(response)).toMatchObject({
      status: 400,
      body: { status: 400, code, type: 'https://api.test/idempotency' },
    })
    expect((await counts(chokaq)).hot).toBe(0)
  })
})

describe('the body of an endpoint', () => {
  it.each([
    ['no type', ''],
    ['text/plain', 'text/plain'],
    ['a form', 'application/x-www-form-urlencoded'],
    ['another charset', 'application/json; charset=latin1'],
  ])('is 415 with %s', async (_what, type) => {
    expect((await openApi().post('k1', undefined, { 'content-type': type })).status).toBe(415)
  })

  it.each(['application/json; charset=UTF-8', 'Application/JSON', 'application/vnd.orders.v2+json'])(
    'is taken as %s',
    async (type) => {
      expect((await openApi().post('k1', undefined, { 'content-type': type })).status).toBe(202)
    },
  )

  it('is 415 where it is compressed', async () => {
    expect((await openApi().post('k1', undefined, { 'content-encoding': 'gzip' })).status).toBe(415)
  })

  it('is 400 where it is no JSON or not what payload() expects', async () => {
    const { post } = openApi()
    expect(await answerOf(await post('k1', '{"item":'))).toMatchObject({ status: 400, body: { code: 'not-json' } })
    expect(await answerOf(await post('k1', ''))).toMatchObject({ status: 400, body: { code: 'not-json' } })
    expect(await answerOf(await post('k1', 'null'))).toMatchObject({ status: 400, body: { code: 'payload-invalid' } })
    expect(await answerOf(await post('k1', { item: 5 }))).toMatchObject({ status: 400, body: { issues: ['$.item'] } })
  })

  it('is 413 over the limit', async () => {
    expect((await openApi({ maxBodyBytes: 20 }).post('k1', { item: 'x'.repeat(30) })).status).toBe(413)
  })
})

describe('authorize', () => {
  const byToken: NonNullable<Options['authorize']> = (headers) => {
    const token = headers.get('authorization')
    return token !== null && { tenant: token }
  }

  it('gives each tenant keys of its own', async () => {
    const { chokaq, post } = openApi({ authorize: byToken })
    expect((await post('k1', undefined, { authorization: 'ann' })).status).toBe(202)
    expect((await post('k1', { item: 'pen' }, { authorization: 'bob' })).status).toBe(202)
    expect((await post('k1', undefined, { authorization: 'ann' })).status).toBe(409)
    const { jobs } = await chokaq.jobs.list('hot')
    expect(jobs.map((each: JobRecord) => each.tenant).toSorted()).toEqual(['ann', 'bob'])
  })

  it('is 401 for false and for an error, and writes nothing', async () => {
    const onError = vi.fn<() => void>()
    const closed = openApi({ authorize: byToken })
    const broken = openApi({ authorize: () => Promise.reject(new TypeError('secret')), onError })
    const answer = await broken.post('k1')
    expect([(await closed.post('k1')).status, answer.status]).toEqual([401, 401])
    expect(await answer.text()).not.toContain('secret')
    expect(onError).toHaveBeenCalledOnce()
    expect([(await counts(closed.chokaq)).hot, (await counts(broken.chokaq)).hot]).toEqual([0, 0])
  })

  it.each([undefined, {}, 'yes', 1])('is 500 for the answer %j, which is neither yes nor no', async (answer) => {
    const { chokaq, post } = openApi({ authorize: () => answer as never })
    expect((await post('k1')).status).toBe(500)
    expect((await counts(chokaq)).hot).toBe(0)
  })
})

describe('a key that does not follow the header', () => {
  it('is 500 for every request, stores nothing, and onError says what to change', async () => {
    const onError = vi.fn<(error: unknown) => void>()
    const { chokaq, post } = openApi({ payload: () => ({ requestKey: 'always', item: 'book' }), onError })
    expect([(await post('k1')).status, (await post('k2')).status]).toEqual([500, 500])
    expect((await counts(chokaq)).hot).toBe(0)
    expect(onError.mock.calls[0]?.[0]).toMatchObject({
      code: 'CHOKAQ_CONFIG_INVALID',
      message: expect.stringMatching(/does not change with the Idempotency-Key/) as unknown,
    })
  })

  it('is not suspected where payload() refuses the probe', async () => {
    const payload: Options['payload'] = (_body, requestKey) => {
      if (!requestKey.startsWith('order-')) throw new TypeError('no order key')
      return { requestKey, item: 'book' }
    }
    expect((await openApi({ payload }).post('order-1')).status).toBe(202)
  })

  it('is looked for once: later requests call payload() once', async () => {
    const payload = vi.fn<Options['payload']>((_body, requestKey) => ({ requestKey, item: 'book' }))
    const { post } = openApi({ payload })
    await post('k1')
    const callsOfFirst = payload.mock.calls.length
    await post('k2')
    expect(payload.mock.calls.length - callsOfFirst).toBe(1)
  })
})
