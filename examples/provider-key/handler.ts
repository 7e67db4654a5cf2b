import { defineEffect, defineHandler, stripe, type Handler } from 'chokaq/worker'
import { capturePayment } from './contract.ts'

/** Your provider's client: one charge per idempotency key. */
export interface PaymentApi {
  charge(cents: number, options: { idempotencyKey: string; signal: AbortSignal }): Promise<{ id: string }>
}

export function captureHandler(api: PaymentApi): Handler {
  const charge = defineEffect({
    name: 'charge',
    // For how long the provider remembers a key, and what its errors prove.
    provider: stripe,
    run: (input: { cents: number }, options) => api.charge(input.cents, options),
  })
  return defineHandler(capturePayment, {
    sideEffects: 'effects',
    effects: { charge },
    whenInterrupted: 'resume',
    async run(p, ctx) {
      const { id } = await ctx.effects.charge({ cents: p.cents })
      return { chargeId: id }
    },
  })
}
