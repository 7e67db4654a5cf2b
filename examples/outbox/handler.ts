import { defineEffect, defineHandler, webhookReceiver, type Handler } from 'chokaq/worker'
import { publishChange } from './contract.ts'

export interface Change {
  readonly orderId: string
  readonly sequence: number
  readonly status: string
}

export interface Receiver {
  /** Takes a message once per id: it keeps the ids, and does not act on one that it has seen. */
  deliver(messageId: string, change: Change): Promise<void>
}

export function publishHandler(receiver: Receiver): Handler {
  const publish = defineEffect({
    name: 'publish',
    provider: webhookReceiver({ header: 'Message-Id', dedupeWindow: '7d' }),
    run: (change: Change, { idempotencyKey }) => receiver.deliver(idempotencyKey, change),
  })
  return defineHandler(publishChange, {
    sideEffects: 'effects',
    effects: { publish },
    whenInterrupted: 'resume',
    run: (change, ctx) => ctx.effects.publish(change),
  })
}
