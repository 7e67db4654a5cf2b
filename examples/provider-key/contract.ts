import { defineJob } from 'chokaq'
import { z } from 'zod'

/** The key is the payment attempt: a customer who tries again after a declined card is a new one. */
export const capturePayment = defineJob({
  type: 'payment.capture.v1',
  payload: z.object({ paymentAttemptId: z.string(), cents: z.number().int() }),
  result: z.object({ chargeId: z.string() }),
  key: (p) => p.paymentAttemptId,
  duplicateWindow: '60d',
})
