import { defineJob } from 'chokaq'
import { z } from 'zod'

export const recordPayment = defineJob({
  type: 'payment.record.v1',
  payload: z.object({ paymentId: z.string(), cents: z.number().int() }),
  key: (p) => p.paymentId,
  duplicateWindow: '60d',
})
