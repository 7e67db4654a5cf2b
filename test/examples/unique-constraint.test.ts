import { describe, expect, it } from 'vitest'
import { recordPayment } from '../../examples/unique-constraint/contract.ts'
import { recordHandler } from '../../examples/unique-constraint/handler.ts'
import { main } from '../../examples/unique-constraint/main.ts'
import { storages } from './storages.ts'
import { never, TwoProcesses } from './two-processes.ts'

describe.each(storages)('examples/unique-constraint on $name', ({ open }) => {
  it('prints what happened', async () => {
    const { storage, runtime, payments } = open()
    const lines: string[] = []
    await main(storage, await payments(), (line) => lines.push(line), runtime)
    expect(lines).toEqual(['enqueued twice: enqueued, already-active', 'written 2 times, 1 row'])
  })

  it('has one row after a crash between the write and the end of the job', async () => {
    const place = open()
    const payments = await place.payments()
    const both = new TwoProcesses(place)
    const { id } = await both.chokaq.enqueue(recordPayment, { paymentId: 'pay-1', cents: 4200 })
    let written = false
    const dies = recordHandler(payments, () => {
      written = true
      return never()
    })
    await both.crash([dies], () => written)
    expect(await payments.all()).toEqual([{ paymentId: 'pay-1', cents: 4200 }])
    await both.goOn([recordHandler(payments)])
    expect(await both.chokaq.jobs.get(id)).toMatchObject({ state: 'completed', attempt: 2 })
    expect(await payments.all()).toEqual([{ paymentId: 'pay-1', cents: 4200 }])
    await both.close()
  })
})
