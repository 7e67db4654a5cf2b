import { defineHandler, type Handler } from 'chokaq/worker'
import { recordPayment } from './contract.ts'
import type { Payments } from './payments.ts'

/** `afterWrite` is where the process may die: the row is there, and the job is not done. */
export function recordHandler(payments: Payments, afterWrite: () => Promise<void> = async () => undefined): Handler {
  return defineHandler(recordPayment, {
    sideEffects: 'unique-constraint',
    whenInterrupted: 'resume',
    async run(p) {
      await payments.upsert(p.paymentId, p.cents)
      await afterWrite()
    },
  })
}
