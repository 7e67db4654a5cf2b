import { describe, expect, it } from 'vitest'
import { capturePayment } from '../../examples/provider-key/contract.ts'
import { captureHandler, type PaymentApi } from '../../examples/provider-key/handler.ts'
import { main } from '../../examples/provider-key/main.ts'
import { storages } from './storages.ts'
import { never, TwoProcesses } from './two-processes.ts'

describe.each(storages)('examples/provider-key on $name', ({ open }) => {
  it('prints what happened', async () => {
    const { storage, runtime } = open()
    const lines: string[] = []
    await main(storage, (line) => lines.push(line), runtime)
    expect(lines).toEqual(['2 calls, 1 charge', 'a duplicate gets ch_1, and nothing runs'])
  })

  it('charges once where the process dies after the provider acted', async () => {
    const both = new TwoProcesses(open())
    const { id } = await both.chokaq.enqueue(capturePayment, { paymentAttemptId: 'attempt-1', cents: 4200 })
    const keys: string[] = []
    const acted: PaymentApi = {
      charge(_cents, { idempotencyKey }) {
        keys.push(idempotencyKey)
        return never()
      },
    }
    await both.crash([captureHandler(acted)], () => keys.length > 0)
    const remembers: PaymentApi = {
      async charge(_cents, { idempotencyKey }) {
        keys.push(idempotencyKey)
        return { id: 'ch_1' }
      },
    }
    await both.goOn([captureHandler(remembers)])
    expect(await both.chokaq.jobs.get(id)).toMatchObject({ state: 'completed', result: '{"chargeId":"ch_1"}' })
    // Two calls under one key: one charge at any provider that takes keys.
    expect([keys.length, new Set(keys).size]).toEqual([2, 1])
    await both.close()
  })
})
