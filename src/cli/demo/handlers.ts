/** The code behind the contracts, with its answers. What the demo proves is that these answers hold. */
import { randomUUID } from 'node:crypto'
import type { Ctx } from '../../core/ctx.ts'
import { defineHandler, type Handler } from '../../core/handler.ts'
import { chargeEffects } from './effects.ts'
import { chargeDelivery, chargeWithoutKey, upsertOrder, type DeliveryPayload } from './jobs.ts'
import type { Orders } from './orders.ts'
import type { ChargeOrder, PaymentClient } from './payment-client.ts'
import { providerOf } from './provider/names.ts'

export interface HandlerParts {
  readonly payments: PaymentClient
  readonly orders: Orders
  readonly isProtected: boolean
}

/** Quick retries, so that a run takes seconds; the defaults begin at 3 s and go on for hours. */
const retry = {
  attempts: 30,
  for: '1h',
  backoff: { base: '100ms', factor: 1.5, cap: '1s', jitter: 0.2 },
} as const

export function demoHandlers(parts: HandlerParts): readonly Handler[] {
  return [parts.isProtected ? chargeHandler(parts) : unprotectedHandler(parts), orderHandler(parts)]
}

function chargeHandler({ payments }: HandlerParts): Handler {
  return defineHandler(chargeDelivery, {
    sideEffects: 'effects',
    effects: chargeEffects(payments),
    whenInterrupted: 'resume',
    retry,
    async run(p, ctx) {
      const order = orderOf(p)
      const { chargeId } = await ctx.effects[order.provider](order)
      await enqueueOrder(p, chargeId, ctx)
      return { chargeId }
    },
  })
}

/** What many a handler looks like: it works, until the first crash. The word 'none' is a lie here. */
function unprotectedHandler({ payments }: HandlerParts): Handler {
  return defineHandler(chargeWithoutKey, {
    sideEffects: 'none',
    retry,
    async run(p, ctx) {
      const { chargeId } = await payments.charge(orderOf(p), { idempotencyKey: randomUUID(), signal: ctx.signal })
      await enqueueOrder(p, chargeId, ctx)
      return { chargeId }
    },
  })
}

function orderOf({ paymentAttemptId, amountCents }: DeliveryPayload): ChargeOrder {
  return { provider: providerOf(paymentAttemptId), paymentAttemptId, amountCents }
}

/** The order job exists if and only if this job completes. */
function enqueueOrder(
  { paymentAttemptId, amountCents, event }: DeliveryPayload,
  chargeId: string,
  ctx: Pick<Ctx, 'enqueue'>,
): Promise<void> {
  return ctx.enqueue(upsertOrder, { paymentAttemptId, chargeId, amountCents, event })
}

function orderHandler({ orders }: HandlerParts): Handler {
  return defineHandler(upsertOrder, {
    sideEffects: 'unique-constraint',
    whenInterrupted: 'resume',
    retry,
    run: (p) => orders.upsert(p),
  })
}
