/** A unique constraint with an upsert: the handler runs twice, and the table has one row. */
import { createChokaQ, type Storage } from 'chokaq'
import { sqlite } from 'chokaq/sqlite'
import { createFakeRuntime, drain, type FakeRuntime } from 'chokaq/testing'
import { createWorker } from 'chokaq/worker'
import { whenStarted, type Print } from '../start.ts'
import { recordPayment } from './contract.ts'
import { recordHandler } from './handler.ts'
import { SqlitePayments, type Payments } from './payments.ts'

/** On virtual time, so that nobody waits for retries. */
export async function main(
  storage: Storage,
  payments: Payments,
  print: Print = console.log,
  runtime: FakeRuntime = createFakeRuntime(),
): Promise<void> {
  const chokaq = createChokaQ({ storage, runtime })
  const payment = { paymentId: 'pay-1', cents: 4200 }
  const first = await chokaq.enqueue(recordPayment, payment)
  const again = await chokaq.enqueue(recordPayment, payment)
  print(`enqueued twice: ${first.outcome}, ${again.outcome}`)

  let writes = 0
  const handler = recordHandler(payments, async () => {
    writes += 1
    if (writes === 1) throw new Error('the process stumbles after the write')
  })
  const worker = createWorker({ chokaq, handlers: [handler] })
  await drain(worker, { runtime })
  print(`written ${writes} times, ${(await payments.all()).length} row`)

  await runtime.complete(worker.stop())
  await chokaq.close()
}

whenStarted(import.meta.url, async (path) => {
  const payments = new SqlitePayments(path)
  await main(sqlite(path), payments)
  payments.close()
})
