import { describe, expect, it } from 'vitest'
import { publishChange } from '../../examples/outbox/contract.ts'
import { publishHandler, type Receiver } from '../../examples/outbox/handler.ts'
import { main } from '../../examples/outbox/main.ts'
import { OrderedReceiver } from '../../examples/outbox/receiver.ts'
import { storages } from './storages.ts'
import { never, TwoProcesses } from './two-processes.ts'

describe.each(storages)('examples/outbox on $name', ({ open }) => {
  it('prints what happened', async () => {
    const { storage, runtime, shop } = open()
    const lines: string[] = []
    await main(storage, await shop(), (line) => lines.push(line), runtime)
    expect(lines).toEqual([
      'a change was rolled back, and its message with it',
      '8 arrivals, 5 of them repeats',
      'applied: order-1 placed, order-1 paid, order-1 sent; the shop says sent',
    ])
  })

  it('has a message for each committed change and none for a change that was rolled back', async () => {
    const place = open()
    const both = new TwoProcesses(place)
    await both.chokaq.ready()
    const shop = await place.shop()
    await shop.change(both.chokaq, 'o1', 'placed')
    await expect(shop.change(both.chokaq, 'o1', 'lost')).rejects.toThrow('never lost')
    await shop.change(both.chokaq, 'o1', 'paid')
    const { jobs } = await both.chokaq.jobs.list('hot', { type: publishChange.type })
    const payloads = jobs.map(({ payload }) => JSON.parse(payload ?? '') as { sequence: number; status: string })
    expect(payloads.toSorted((a, b) => a.sequence - b.sequence)).toEqual([
      { orderId: 'o1', sequence: 1, status: 'placed' },
      { orderId: 'o1', sequence: 2, status: 'paid' },
    ])
    expect(await shop.statusOf('o1')).toBe('paid')
    await both.close()
  })

  it('applies once where the publisher dies after the receiver has taken the message', async () => {
    const place = open()
    const both = new TwoProcesses(place)
    await both.chokaq.ready()
    await (await place.shop()).change(both.chokaq, 'o1', 'placed')
    const receiver = new OrderedReceiver()
    const answersNever: Receiver = {
      async deliver(messageId, change) {
        await receiver.deliver(messageId, change)
        return never()
      },
    }
    await both.crash([publishHandler(answersNever)], () => receiver.arrivals > 0)
    await both.goOn([publishHandler(receiver)])
    expect(receiver).toMatchObject({ arrivals: 2, repeats: 1, applied: ['o1 placed'] })
    await both.close()
  })
})
