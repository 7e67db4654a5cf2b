// The same event id with another content: the sender must not repeat it for ever, and a person must get to see it.
import { describe, expect, it, vi } from 'vitest'
import { answerOf, counts, delivery, openChokaQ, receiverOf } from './receiving.ts'

const first = JSON.stringify({ event: 'order.paid', amount: 12 })
const second = JSON.stringify({ event: 'order.paid', amount: 13 })
const third = JSON.stringify({ event: 'order.paid', amount: 14 })

describe('a conflicting delivery', () => {
  it('is answered with 200 and kept as one dead job, however often it comes', async () => {
    const chokaq = openChokaQ()
    const receive = receiverOf(chokaq)
    const holder = await answerOf(await receive(delivery('d1', first)))
    const conflict = await answerOf(await receive(delivery('d1', second)))
    const again = await answerOf(await receive(delivery('d1', second)))
    const id = String(conflict.body['id'])
    expect(conflict).toEqual({ status: 200, body: { outcome: 'conflict', id } })
    expect(again).toEqual({ status: 200, body: { outcome: 'conflict' } })
    expect(await counts(chokaq)).toEqual({ hot: 1, archive: 0, dlq: 1 })
    const dead = await chokaq.jobs.get(id)
    expect(dead).toMatchObject({ pillar: 'dlq', reason: 'KeyReused', duplicateOf: holder.body['id'], keyPrefix: 'd1' })
    expect(dead?.payload).toContain('13')
    expect(dead?.failure).toMatchObject({ code: 'CHOKAQ_KEY_REUSED' })
    expect(dead?.failure?.message).toContain('$.amount')
  })

  it('is kept once where 50 arrive at the same time', async () => {
    const chokaq = openChokaQ()
    const receive = receiverOf(chokaq)
    await receive(delivery('d1', first))
    const answers = await Promise.all(
      Array.from({ length: 50 }, async () => answerOf(await receive(delivery('d1', second)))),
    )
    expect(answers.every(({ status, body }) => status === 200 && body['outcome'] === 'conflict')).toBe(true)
    expect(answers.filter(({ body }) => 'id' in body)).toHaveLength(1)
    expect(await counts(chokaq)).toEqual({ hot: 1, archive: 0, dlq: 1 })
  })

  it('is kept once per content', async () => {
    const chokaq = openChokaQ()
    const receive = receiverOf(chokaq)
    for (const body of [first, second, third, second, third]) await receive(delivery('d1', body))
    expect(await counts(chokaq)).toEqual({ hot: 1, archive: 0, dlq: 2 })
  })

  it('leaves the first content its place', async () => {
    const chokaq = openChokaQ()
    const receive = receiverOf(chokaq)
    await receive(delivery('d1', first))
    await receive(delivery('d1', second))
    expect((await answerOf(await receive(delivery('d1', first)))).body['outcome']).toBe('already-active')
  })

  it('tells onError once', async () => {
    const onError = vi.fn<() => void>()
    const receive = receiverOf(openChokaQ(), { onError })
    for (const body of [first, second, second]) await receive(delivery('d1', body))
    expect(onError).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: 'CHOKAQ_KEY_REUSED' }), {
      status: 200,
      code: 'key-reused',
    })
  })
})
