// What the examples in the sources take for granted: the package, a schema library, a few jobs, and stand-ins for the
// outside world.
import type { RequestListener } from 'node:http'
import { createChokaQ, defineJob } from 'chokaq'
import { webhook, type RequestHandler } from 'chokaq/http'
import { sqlite } from 'chokaq/sqlite'
import { createWorker, defineHandler } from 'chokaq/worker'
import { z } from 'zod'

export { createChokaQ, defineJob, logEvents } from 'chokaq'
export * from 'chokaq/deck'
export * from 'chokaq/http'
export * from 'chokaq/otel'
export * from 'chokaq/postgres'
export { sqlite } from 'chokaq/sqlite'
export * from 'chokaq/testing'
export * from 'chokaq/worker'
export { pino } from 'pino'
export { expect } from 'vitest'
export { z } from 'zod'

export const chokaq = createChokaQ({ storage: sqlite(':memory:') })

export const resizeImage = defineJob({ type: 'image.resize.v1', payload: z.object({ id: z.string() }) })
export const thumbnail = async (_id: string): Promise<void> => undefined
export const resize = defineHandler(resizeImage, { sideEffects: 'none', run: (p) => thumbnail(p.id) })

export const sendMail = defineJob({ type: 'mail.send.v1', payload: z.object({ to: z.string() }) })
export const sendWelcome = defineJob({ type: 'mail.welcome.v1', payload: z.object({ email: z.string() }) })
export const welcome = defineHandler(sendWelcome, {
  sideEffects: 'none',
  run: (p, ctx) => ctx.enqueue(sendMail, { to: p.email }),
})
export const signUp = (user: { email: string }): Promise<unknown> => chokaq.enqueue(sendWelcome, user)

export const worker = createWorker({ chokaq, handlers: [resize] })

// Clients of PostgreSQL whose transactions are never begun: the examples have no server.
export const db = { transaction: async (_work: (tx: unknown) => Promise<void>): Promise<void> => undefined }
export const knex = { transaction: db.transaction }
export const to = 'ada@example.org'
export const sql = Object.assign((text: TemplateStringsArray, ...values: unknown[]): unknown => [text, values], {
  raw: (text: string): unknown => text,
  join: (chunks: unknown[]): unknown => chunks,
})

export const orderPaid = defineJob({
  type: 'order.paid.v1',
  payload: z.object({ deliveryId: z.string(), size: z.number() }),
  key: (p) => p.deliveryId,
  duplicateWindow: '7d',
})
export const createOrder = defineJob({
  type: 'order.create.v1',
  payload: z.object({ requestKey: z.string(), order: z.string() }),
  key: (p) => p.requestKey,
  duplicateWindow: '7d',
})
export const orderOf = (body: unknown): string => JSON.stringify(body)

export const secret = 'a secret of the sender'
export const newSecret = 'the secret from today on'
export const oldSecret = 'the secret until today'
export const endpointSecret = 'whsec_example'
export const handler: RequestHandler = webhook({
  chokaq,
  job: orderPaid,
  verify: () => true,
  payload: (raw) => ({ deliveryId: 'd', size: raw.length }),
})

export const sdk = {
  charges: { create: async (_p: object, _o: object): Promise<{ id: string }> => ({ id: 'ch_1' }) },
}

/** No port is opened. */
export const createServer = (_listener: RequestListener): { listen(port: number): void } => ({
  listen: () => undefined,
})
export const app = { post: (_path: string, _listener: unknown): void => undefined }
