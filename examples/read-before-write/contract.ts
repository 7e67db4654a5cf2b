import { defineJob } from 'chokaq'
import { z } from 'zod'

/** Each version of a document is an operation of its own; the index must end at the newest. */
export const indexDocument = defineJob({
  type: 'document.index.v1',
  payload: z.object({ documentId: z.string(), version: z.number().int(), text: z.string() }),
  key: (p) => `${p.documentId}#${p.version}`,
  duplicateWindow: '7d',
})
