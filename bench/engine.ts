/** The engine as a user has it: a client, a worker and no-op jobs. */
import { createChokaQ, defineJob, type ChokaQ } from 'chokaq'
import { postgres } from 'chokaq/postgres'
import { sqlite } from 'chokaq/sqlite'
import { createWorker, defineEffect, defineHandler, noKey, type Worker } from 'chokaq/worker'
import { z } from 'zod'

export const payload = { invoiceId: 'inv_000000', amountCents: 1_299, email: 'a@example.com' }
export const payloadText = JSON.stringify(payload)

const schema = z.object({ invoiceId: z.string(), amountCents: z.number(), email: z.string() })
export const plainJob = defineJob({ type: 'bench.v1', payload: schema })
export const keyedJob = defineJob({
  type: 'bench.v1',
  payload: schema,
  key: (p) => p.invoiceId,
  duplicateWindow: '1d',
})
export type Variant = 'unkeyed' | 'keyed' | 'keep: 0' | 'one effect'

const act = defineEffect({
  name: 'act',
  provider: noKey('nobody'),
  run: async (input: { readonly id: string }) => ({ id: input.id }),
})

function isKeyed(variant: Variant): boolean {
  return variant === 'keyed' || variant === 'one effect'
}

/** A file of SQLite, or the URL of a PostgreSQL server, in a schema of its own. */
export function open(path: string, schema = 'bench'): ChokaQ {
  const storage = path.startsWith('postgres') ? postgres(path, { schema }) : sqlite(path)
  return createChokaQ({ storage })
}

/** Enqueues `count` jobs of a variant, a thousand a call. */
export async function fill(chokaq: ChokaQ, variant: Variant, count: number): Promise<void> {
  for (let from = 0; from < count; from += 1_000) {
    const payloads = Array.from({ length: Math.min(1_000, count - from) }, (_, i) => ({
      ...payload,
      invoiceId: `inv_${from + i}`,
    }))
    await chokaq.enqueueMany(isKeyed(variant) ? keyedJob : plainJob, payloads)
  }
}

/** Runs everything that waits; resolves when the last of `count` is settled and the worker has stopped. */
export async function drain(chokaq: ChokaQ, variant: Variant, count: number, concurrency = 250): Promise<void> {
  let left = count
  let finish: () => void = () => undefined
  const finished = new Promise<void>((resolve) => (finish = resolve))
  const ran = (): void => {
    left -= 1
    if (left === 0) finish()
  }
  const handler =
    variant === 'one effect'
      ? defineHandler(keyedJob, {
          sideEffects: 'effects',
          effects: { act },
          whenInterrupted: 'resume',
          async run(p, ctx) {
            await ctx.effects.act({ id: p.invoiceId })
            ran()
          },
        })
      : defineHandler(isKeyed(variant) ? keyedJob : plainJob, {
          sideEffects: 'none',
          ...(variant === 'keep: 0' ? { keep: { completed: 0 as const } } : {}),
          run: async () => ran(),
        })
  const worker = createWorker({ chokaq, handlers: [handler], concurrency })
  await worker.start()
  await finished
  await worker.stop()
}

/** A worker whose handler calls back with its start, in nanoseconds of the machine's monotonic clock. */
export async function startListener(chokaq: ChokaQ, onStart: (atNs: bigint) => void): Promise<Worker> {
  const handler = defineHandler(plainJob, {
    sideEffects: 'none',
    async run() {
      onStart(process.hrtime.bigint())
    },
  })
  const worker = createWorker({ chokaq, handlers: [handler] })
  await worker.start()
  return worker
}
