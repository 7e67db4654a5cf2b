/** The code behind the contracts, with its answers. What the demo proves is that these answers hold. */
import { randomUUID } from 'node:crypto'
import type { Ctx } from '../../core/ctx.ts'
import { defineHandler, type Handler } from '../../core/handler.ts'
import { chargeDelivery, chargeWithoutKey, upsertOrder, type DeliveryPayload } from './jobs.ts'
import type { Orders } from './orders.ts'
import type { PaymentClient } from './payment-client.ts'

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
    sideEffects: 'repeatable',
    because: 'the provider makes one charge per idempotency key and answers each repeat with it',
    retry,
    // The same key on every attempt of this job, whoever runs it.
    run: (p, ctx) => chargeAndOrder(payments, p, ctx, ctx.idempotencyKey('charge')),
  })
}

/** What many a handler looks like: it works, until the first crash. The word 'none' is a lie here. */
function unprotectedHandler({ payments }: HandlerParts): Handler {
  return defineHandler(chargeWithoutKey, {
    sideEffects: 'none',
    retry,
    run: (p, ctx) => chargeAndOrder(payments, p, ctx, randomUUID()),
  })
}

async function chargeAndOrder(
  payments: PaymentClient,
  { paymentAttemptId, amountCents, event }: DeliveryPayload,
  ctx: Ctx,
  idempotencyKey: string,
): Promise<{ chargeId: string }> {
  const chargeId = await payments.charge({ idempotencyKey, paymentAttemptId, amountCents }, ctx.signal)
  // The order job exists if and only if this job completes.
  await ctx.enqueue(upsertOrder, { paymentAttemptId, chargeId, amountCents, event })
  return { chargeId }
}

function orderHandler({ orders }: HandlerParts): Handler {
  return defineHandler(upsertOrder, {
    sideEffects: 'unique-constraint',
    whenInterrupted: 'resume',
    retry,
    run: (p) => orders.upsert(p),
  })
}
