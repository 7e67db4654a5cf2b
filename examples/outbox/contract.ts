import { defineJob } from 'chokaq'
import { z } from 'zod'

/** One message of the outbox. `sequence` counts the changes of one order, so that the receiver can put them in order. */
export const publishChange = defineJob({
  type: 'order.changed.v1',
  payload: z.object({ orderId: z.string(), sequence: z.number().int().positive(), status: z.string() }),
  key: (p) => `${p.orderId}#${p.sequence}`,
  duplicateWindow: '30d',
})
