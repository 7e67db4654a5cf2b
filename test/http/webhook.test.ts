import { createRequire } from 'node:module'
import { defineJob } from 'chokaq'
import { verifyHmacSha256, webhook } from 'chokaq/http'
import { describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import {
  answerOf,
  counts,
  delivery,
  eventReceived,
  openChokaQ,
  orderBody,
  receiverOf,
  secret,
  signatureHeader,
  signedHeaders,
} from './receiving.ts'

/** Recorded deliveries, by the name of their event. */
const examples = createRequire(import.meta.url)('@octokit/webhooks-examples') as readonly {
  readonly name: string
  readonly examples: readonly unknown[]
}[]

describe('a webhook', () => {
  it('answers 202 once the job is stored', async () => {
    const chokaq = openChokaQ()
    const { status, body } = await answerOf(await receiverOf(chokaq)(delivery('d1')))
    expect({ status, outcome: body['outcome'] }).toEqual({ status: 202, outcome: 'enqueued' })
    const stored = await chokaq.jobs.get(String(body['id']))
    expect(stored).toMatchObject({ pillar: 'hot', type: 'event.received.v1', keyPrefix: 'd1' })
    expect(JSON.parse(stored?.payload ?? '')).toEqual({ deliveryId: 'd1', event: 'order.paid', amount: 12 })
  })

  it('makes one job of 50 concurrent deliveries', async () => {
    const chokaq = openChokaQ()
    const receive = receiverOf(chokaq)
    const answers = await Promise.all(Array.from({ length: 50 }, async () => answerOf(await receive(delivery('d1')))))
    expect(answers.filter(({ status }) => status === 202)).toHaveLength(1)
    expect(answers.filter(({ status, body }) => status === 200 && body['outcome'] === 'already-active')).toHaveLength(
      49,
    )
    expect(new Set(answers.map(({ body }) => body['id'])).size).toBe(1)
    expect(await counts(chokaq)).toEqual({ hot: 1, archive: 0, dlq: 0 })
  })

  it('takes every example payload of GitHub once, and each redelivery as a duplicate', async () => {
    const chokaq = openChokaQ()
    const job = defineJob({
      type: 'github.event.v1',
      payload: z.object({ deliveryId: z.string(), event: z.string(), body: z.unknown() }),
      key: (p) => p.deliveryId,
      duplicateWindow: '7d',
    })
    const receive = webhook({
      chokaq,
      job,
      verify: verifyHmacSha256({ secret, header: signatureHeader, prefix: 'sha256=' }),
      payload: (raw, headers) => ({
        deliveryId: headers.get('x-delivery') ?? '',
        event: headers.get('x-github-event') ?? '',
        body: JSON.parse(new TextDecoder().decode(raw)) as unknown,
      }),
    })
    const events = examples.map(({ name, examples: [example] }) => ({ name, body: JSON.stringify(example) }))
    const deliverAll = () =>
      Promise.all(events.map(({ name, body }) => receive(delivery(`id-${name}`, body, { 'x-github-event': name }))))
    expect(new Set((await deliverAll()).map(({ status }) => status))).toEqual(new Set([202]))
    expect(new Set((await deliverAll()).map(({ status }) => status))).toEqual(new Set([200]))
    expect(await counts(chokaq)).toEqual({ hot: events.length, archive: 0, dlq: 0 })
  })

  it('hands the exact bytes to verify and payload', async () => {
    const bytes = Uint8Array.from([0, 255, 13, 10, 128, 34])
    const seen: Uint8Array[] = []
    const receive = receiverOf(openChokaQ(), {
      verify: (raw) => seen.push(raw) > 0,
      payload: (raw) => {
        seen.push(raw)
        return { deliveryId: 'd1', event: 'e', amount: 1 }
      },
    })
    const response = await receive(new Request('http://receiver.test/', { method: 'POST', body: bytes }))
    expect(response.status).toBe(202)
    expect(seen).toEqual([bytes, bytes])
  })

  it('answers only POST', async () => {
    const receive = receiverOf(openChokaQ())
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS']) {
      const response = await receive(new Request('http://receiver.test/', { method }))
      expect([method, response.status, response.headers.get('allow')]).toEqual([method, 405, 'POST'])
    }
  })
})

describe('a delivery that does not verify', () => {
  it.each([
    ['a wrong signature', { [signatureHeader]: `sha256=${'0'.repeat(64)}` }],
    ['the signature of another body', { [signatureHeader]: signedHeaders('d1', 'other')[signatureHeader] ?? '' }],
    ['an empty signature', { [signatureHeader]: '' }],
  ])('writes nothing and is not parsed: %s', async (_what, headers) => {
    const chokaq = openChokaQ()
    const payload = vi.fn<() => never>()
    const { status, body } = await answerOf(await receiverOf(chokaq, { payload })(delivery('d1', orderBody, headers)))
    expect({ status, code: body['code'] }).toEqual({ status: 401, code: 'not-authorized' })
    expect(payload).not.toHaveBeenCalled()
    expect(await counts(chokaq)).toEqual({ hot: 0, archive: 0, dlq: 0 })
  })

  it('tells onError why verify threw, and the sender nothing', async () => {
    const failure = new TypeError('the key is s3cr3t')
    const onError = vi.fn<() => void>()
    const receive = receiverOf(openChokaQ(), { verify: () => Promise.reject(failure), onError })
    const response = await receive(delivery('d1'))
    expect(response.status).toBe(401)
    expect(await response.text()).not.toContain('s3cr3t')
    expect(onError).toHaveBeenCalledExactlyOnceWith(failure, { status: 401, code: 'not-authorized' })
  })

  it.each([1, 'yes', {}, undefined, null])('takes nothing but true for a yes: %j', async (answer) => {
    const chokaq = openChokaQ()
    const response = await receiverOf(chokaq, { verify: () => answer as boolean })(delivery('d1'))
    expect(response.status).toBe(401)
    expect((await counts(chokaq)).hot).toBe(0)
  })
})

describe('a payload that is refused', () => {
  it('is 400 where payload() throws', async () => {
    const onError = vi.fn<() => void>()
    const { status, body } = await answerOf(await receiverOf(openChokaQ(), { onError })(delivery('d1', 'no JSON')))
    expect({ status, code: body['code'] }).toEqual({ status: 400, code: 'payload-invalid' })
    expect(onError).toHaveBeenCalledExactlyOnceWith(expect.any(SyntaxError), { status: 400, code: 'payload-invalid' })
  })

  it('names what the schema refuses and shows no value', async () => {
    const chokaq = openChokaQ()
    const job = defineJob({
      type: 'quoting.v1',
      payload: z.object({
        id: z.string(),
        card: z.string().refine(() => false, { error: (issue) => `no card: ${String(issue.input)}` }),
      }),
      key: (p) => p.id,
      duplicateWindow: '1d',
    })
    const receive = webhook({ chokaq, job, verify: () => true, payload: () => ({ id: '1', card: '4242' }) })
    const response = await receive(delivery('d1'))
    const text = await response.text()
    expect(response.status).toBe(400)
    expect(JSON.parse(text)).toMatchObject({ code: 'payload-invalid', issues: ['$.card'] })
    expect(text).not.toContain('4242')
    expect((await counts(chokaq)).hot).toBe(0)
  })

  it('is 400 where the key is empty: the sender left the id out', async () => {
    const chokaq = openChokaQ()
    const { status, body } = await answerOf(await receiverOf(chokaq)(delivery('')))
    expect({ status, code: body['code'] }).toEqual({ status: 400, code: 'key-empty' })
    expect((await counts(chokaq)).hot).toBe(0)
  })

  it('is 413 where it is larger than a job may be', async () => {
    const chokaq = openChokaQ({ maxPayloadBytes: 50 })
    const { status, body } = await answerOf(await receiverOf(chokaq)(delivery('d1')))
    expect({ status, code: body['code'] }).toEqual({ status: 413, code: 'body-too-large' })
  })
})

describe('an error inside', () => {
  it('is 500 without insides, and onError hears it', async () => {
    const onError = vi.fn<() => void>()
    const job = defineJob({
      type: 'broken.v1',
      payload: z.object({ id: z.string() }),
      key: (): string => {
        throw new TypeError('table users is missing')
      },
      duplicateWindow: '1d',
    })
    const receive = webhook({ chokaq: openChokaQ(), job, verify: () => true, payload: () => ({ id: '1' }), onError })
    const response = await receive(delivery('d1'))
    const text = await response.text()
    expect(response.status).toBe(500)
    expect(text).not.toMatch(/users|broken|CHOKAQ/)
    expect(onError).toHaveBeenCalledOnce()
  })

  it('is answered even where onError throws', async () => {
    const onError = (): never => {
      throw new TypeError('the log is down')
    }
    expect((await receiverOf(openChokaQ(), { onError })(delivery('d1', 'no JSON'))).status).toBe(400)
  })
})

describe('making a webhook', () => {
  const payload = z.object({ id: z.string() })
  const rest = { verify: () => true, payload: () => ({ id: '1' }) }

  it.each([
    ['no key', defineJob({ type: 'a.v1', payload })],
    ["key: 'job-id'", defineJob({ type: 'a.v1', payload, key: 'job-id' })],
  ])('is refused for a contract with %s', (_what, job) => {
    expect(() => webhook({ chokaq: openChokaQ(), job: job as never, ...rest })).toThrow(
      expect.objectContaining({ code: 'CHOKAQ_CONFIG_INVALID', message: expect.stringContaining('key') as unknown }),
    )
  })

  it.each([
    ['an unknown option', { maxBodyByte: 5 }, /did you mean "maxBodyBytes"/],
    ['verify that is no function', { verify: true }, /verify of webhook must be a function/],
    ['no payload', { payload: undefined }, /payload of webhook must be a function/],
    ['a limit of zero', { maxBodyBytes: 0 }, /maxBodyBytes is 0/],
    ['a foreign client', { chokaq: {} }, /createChokaQ/],
  ])('is refused with %s', (_what, wrong, message) => {
    const options = { chokaq: openChokaQ(), job: eventReceived, ...rest, ...wrong }
    expect(() => webhook(options as never)).toThrow(message)
  })
})
