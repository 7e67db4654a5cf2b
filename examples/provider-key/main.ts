/** A provider's idempotency key: the answer to the first call is lost, and the repeat gets the same charge. */
import { createChokaQ, type Storage } from 'chokaq'
import { sqlite } from 'chokaq/sqlite'
import { createFakeRuntime, drain, type FakeRuntime } from 'chokaq/testing'
import { createWorker } from 'chokaq/worker'
import { whenStarted, type Print } from '../start.ts'
import { capturePayment } from './contract.ts'
import { captureHandler, type PaymentApi } from './handler.ts'

/** Stands for the provider: it remembers keys, and loses its first answer. */
class ForgetfulNetwork implements PaymentApi {
  readonly charges = new Map<string, { id: string }>()
  calls = 0

  async charge(_cents: number, { idempotencyKey }: { idempotencyKey: string }): Promise<{ id: string }> {
    const charge = this.charges.get(idempotencyKey) ?? { id: `ch_${this.charges.size + 1}` }
    this.charges.set(idempotencyKey, charge)
    this.calls += 1
    if (this.calls === 1) throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })
    return charge
  }
}

/** On virtual time, so that nobody waits for retries. */
export async function main(
  storage: Storage,
  print: Print = console.log,
  runtime: FakeRuntime = createFakeRuntime(),
): Promise<void> {
  const chokaq = createChokaQ({ storage, runtime })
  const api = new ForgetfulNetwork()
  const payment = { paymentAttemptId: 'attempt-1', cents: 4200 }
  await chokaq.enqueue(capturePayment, payment)
  const worker = createWorker({ chokaq, handlers: [captureHandler(api)] })
  await drain(worker, { runtime })
  print(`${api.calls} calls, ${api.charges.size} charge`)

  const later = await chokaq.enqueue(capturePayment, payment)
  if (later.outcome === 'already-completed') print(`a duplicate gets ${later.result.chargeId}, and nothing runs`)

  await runtime.complete(worker.stop())
  await chokaq.close()
}

whenStarted(import.meta.url, (path) => main(sqlite(path)))
