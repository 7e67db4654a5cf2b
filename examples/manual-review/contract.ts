import { defineJob } from 'chokaq'
import { z } from 'zod'

export const printLetter = defineJob({
  type: 'letter.print.v1',
  payload: z.object({ letterId: z.string(), text: z.string() }),
  result: z.object({ sheet: z.number().int() }),
  key: (p) => p.letterId,
  duplicateWindow: '90d',
})
