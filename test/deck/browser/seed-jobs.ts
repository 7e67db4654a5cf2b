// Jobs in every pillar and state, left behind by a worker that really ran.
import { defineJob, type ChokaQ } from 'chokaq'
import { createWorker, defineEffect, defineHandler, FatalError, noKey, ReviewNeeded, stripe } from 'chokaq/worker'
import { z } from 'zod'

export const resize = defineJob({
  type: 'image.resize.v1',
  payload: z.object({ id: z.string(), width: z.int().positive() }),
})
export const capture = defineJob({
  type: 'payment.capture.v1',
  payload: z.object({ order: z.string(), cents: z.int() }),
  result: z.object({ chargeId: z.string() }),
  key: (p) => p.order,
  duplicateWindow: '1d',
})
export const print = defineJob({
  type: 'letter.print.v1',
  payload: z.object({ letter: z.string() }),
  key: (p) => p.letter,
  duplicateWindow: '1d',
})
export const sync = defineJob({ type: 'stock.sync.v1', payload: z.object({ shop: z.string() }) })

const authorize = defineEffect({
  name: 'authorize',
  provider: stripe,
  run: async (input: { cents: number }) => ({ id: `auth_${input.cents}` }),
  compensate: async () => undefined,
})
const charge = defineEffect({
  name: 'charge',
  provider: noKey('bank'),
  run: async (input: { order: string; cents: number }) => {
    if (input.order.startsWith('doubt')) {
      throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' })
    }
    return { id: `ch_${input.order}` }
  },
  compensate: async () => undefined,
})

const handlers = [
  defineHandler(resize, {
    sideEffects: 'none',
    async run(p) {
      if (p.id.startsWith('bad')) throw new FatalError(`cannot read ${p.id}`)
    },
  }),
  defineHandler(capture, {
    sideEffects: 'effects',
    effects: { authorize, charge },
    whenInterrupted: 'resume',
    async run(p, ctx) {
      await ctx.effects.authorize({ cents: p.cents })
      const { id } = await ctx.effects.charge({ order: p.order, cents: p.cents })
      if (p.order.startsWith('look')) throw new ReviewNeeded('the amount is unusual')
      return { chargeId: id }
    },
  }),
  defineHandler(print, {
    sideEffects: 'unguarded',
    whenInterrupted: 'review',
    async run(p) {
      if (p.letter.startsWith('jam')) throw new Error('paper jam')
    },
  }),
  defineHandler(sync, {
    sideEffects: 'none',
    retry: { attempts: 5 },
    async run(p) {
      if (p.shop === 'closed') throw new Error('503 Service Unavailable')
    },
  }),
]

export const by = { actor: 'setup', note: 'seed' }

/** Runs what is due, until nothing is left. */
export async function work(chokaq: ChokaQ): Promise<void> {
  const worker = createWorker({ chokaq, handlers, name: 'seed-worker' })
  while ((await worker.tick()) > 0);
  await worker.stop()
}

export const deadCount = 70

export async function seed(chokaq: ChokaQ): Promise<void> {
  await chokaq.enqueueMany(
    resize,
    Array.from({ length: deadCount }, (_, at) => ({ id: `bad-${at}`, width: 100 + at })),
    { tags: ['import-7'] },
  )
  await chokaq.enqueueMany(resize, [{ id: 'one', width: 1 }])
  const doubtful: string[] = []
  for (const order of ['order-1', 'doubt-1', 'doubt-2', 'doubt-3', 'doubt-4', 'look-1']) {
    const { id } = await chokaq.enqueue(capture, { order, cents: 4_900 })
    if (order.startsWith('doubt')) doubtful.push(id)
  }
  for (const letter of ['letter-1', 'jam-1']) await chokaq.enqueue(print, { letter })
  await chokaq.enqueue(sync, { shop: 'closed' })
  await work(chokaq)
  // The second attempt finds a call without an outcome, and no way to ask: a person has to.
  for (const id of doubtful) await chokaq.jobs.retryNow(id, by)
  await work(chokaq)
  await chokaq.enqueue(sync, { shop: 'later' }, { delay: '2h' })
  for (const shop of ['a', 'b', 'c']) await chokaq.enqueue(sync, { shop }, { queue: 'imports' })
}
