// The jobs of the engine tests: a plain one, a keyed one, one with a side effect nobody guards.
import { defineJob } from 'chokaq'
import { defineHandler, type Ctx, type Handler } from 'chokaq/worker'
import { z } from 'zod'

/** Without a key. */
export const resize = defineJob({
  type: 'image.resize.v1',
  payload: z.object({ id: z.string() }),
  result: z.unknown(),
})

/** With a key; the amount must be the same for the same key. */
export const capture = defineJob({
  type: 'payment.capture.v1',
  payload: z.object({ paymentId: z.string(), amount: z.number().default(1), note: z.string().optional() }),
  result: z.object({ chargeId: z.string() }),
  key: (p) => p.paymentId,
  duplicateWindow: '7d',
  sameWhen: (p) => p.amount,
})

/** Keyed, and may be enqueued without its contract. */
export const raw = defineJob({
  type: 'import.row.v1',
  payload: z.object({ row: z.string() }),
  key: (p) => p.row,
  duplicateWindow: '1d',
  allowRaw: true,
})

type Run<P> = (payload: P, ctx: Ctx) => Promise<unknown>

export function resizing(run: Run<{ id: string }>, options: object = {}): Handler {
  return defineHandler(resize, { sideEffects: 'none', ...options, run })
}

export function capturing(
  run: Run<{ paymentId: string; amount: number }> = async (p) => ({ chargeId: `ch_${p.paymentId}` }),
  options: object = {},
): Handler {
  return defineHandler(capture, {
    sideEffects: 'unique-constraint',
    whenInterrupted: 'resume',
    ...options,
    run: run as Run<unknown> as (payload: unknown, ctx: Ctx) => Promise<{ chargeId: string }>,
  })
}

/** As `capturing`, with a side effect that nobody guards: every abnormal end waits for a person. */
export function unguarded(run: Run<{ paymentId: string; amount: number }>, options: object = {}): Handler {
  return capturing(run, { sideEffects: 'unguarded', whenInterrupted: 'review', ...options })
}
