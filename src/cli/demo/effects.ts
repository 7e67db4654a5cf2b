/** How each provider is charged, and how a doubt about it ends. */
import { defineEffect, type CallOptions, type Effect } from '../../core/effect.ts'
import { defineProvider, noKey, type Provider } from '../../core/provider.ts'
import type { ChargeOrder, PaymentClient } from './payment-client.ts'
import type { ProviderName } from './provider/names.ts'
import { callTimeoutMs } from './settings.ts'

type ChargeEffect = Effect<ChargeOrder, { chargeId: string }>

/** Stripe's rules, except that the demo's provider stores no errors: a repeat after a 500 gets the charge. */
const keyed = defineProvider({
  name: 'card',
  keyFormat: { maxLength: 255 },
  dedupeWindow: '24h',
  onProviderError: 'reexecuted',
  callTimeout: callTimeoutMs,
})

export function chargeEffects(payments: PaymentClient): Readonly<Record<ProviderName, ChargeEffect>> {
  const bank = noKey('bank', { callTimeout: callTimeoutMs })
  const voucher = noKey('voucher', { callTimeout: callTimeoutMs })
  const run = (order: ChargeOrder, options: CallOptions): Promise<{ chargeId: string }> =>
    payments.charge(order, options)
  const charge = (provider: Provider): ChargeEffect => defineEffect({ name: `charge-${provider.name}`, provider, run })
  return {
    // In doubt: the same key again.
    card: charge(keyed),
    // In doubt: the bank is asked. Its reads lag, so `absent` counts only once the call is older than settleAfter.
    bank: defineEffect({
      name: 'charge-bank',
      provider: bank,
      run,
      async reconcile({ paymentAttemptId }, { signal }) {
        const found = await payments.find(paymentAttemptId, signal)
        return found === undefined ? 'absent' : { present: found }
      },
    }),
    // In doubt: nothing here can tell, so a person does.
    voucher: charge(voucher),
  }
}
