/**
 * The three providers of the demo, by what they offer for a repeat:
 *
 *   card     takes idempotency keys
 *   bank     takes no key, and can be asked what it did; its answers lag behind its books
 *   voucher  neither: only a person who looks into its books can tell
 */
import { createHash } from 'node:crypto'

export const providerNames = ['card', 'bank', 'voucher'] as const
export type ProviderName = (typeof providerNames)[number]

export function isProviderName(value: unknown): value is ProviderName {
  return providerNames.some((name) => name === value)
}

/** How a customer pays: always the same for the same payment attempt. */
export function providerOf(paymentAttemptId: string): ProviderName {
  const dice = createHash('sha256').update(`pays with ${paymentAttemptId}`).digest().readUInt16BE(0) % 20
  if (dice < 11) return 'card'
  return dice < 16 ? 'bank' : 'voucher'
}
