/** The two contracts of the demo: what receiver and workers agree on. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { defineJob } from '../../core/contract.ts'

export interface DeliveryPayload {
  readonly deliveryId: string
  /** GitHub's event name. */
  readonly event: string
  readonly paymentAttemptId: string
  readonly amountCents: number
  /** The webhook as it came. */
  readonly webhook: Readonly<Record<string, unknown>>
}

export interface OrderPayload {
  readonly paymentAttemptId: string
  readonly chargeId: string
  readonly amountCents: number
  readonly event: string
}

interface ChargeResult {
  readonly chargeId: string
}

const deliverySchema = schema<DeliveryPayload>({
  deliveryId: 'string',
  event: 'string',
  paymentAttemptId: 'string',
  amountCents: 'number',
  webhook: 'object',
})
const chargeResult = schema<ChargeResult>({ chargeId: 'string' })

/** One delivery, one payment attempt, one charge. GitHub redelivers for days; the demo's duplicates come within minutes. */
export const chargeDelivery = defineJob({
  type: 'payment.charge.v1',
  queue: 'payments',
  payload: deliverySchema,
  result: chargeResult,
  key: (p) => p.paymentAttemptId,
  duplicateWindow: '3d',
})

/** The same job as somebody writes it who was not asked: no key, so each request is a job of its own. */
export const chargeWithoutKey = defineJob({
  type: 'payment.charge-without-key.v1',
  queue: 'payments',
  payload: deliverySchema,
  result: chargeResult,
})

export const upsertOrder = defineJob({
  type: 'order.upsert.v1',
  queue: 'orders',
  payload: schema<OrderPayload>({
    paymentAttemptId: 'string',
    chargeId: 'string',
    amountCents: 'number',
    event: 'string',
  }),
  key: (p) => p.paymentAttemptId,
  duplicateWindow: '3d',
})

type Kinds<T> = { readonly [K in keyof T]: 'string' | 'number' | 'object' }

/** A Standard Schema by hand, because this package installs no schema library. In your code it is zod or a like. */
function schema<T extends object>(kinds: Kinds<T>): StandardSchemaV1<T> {
  return {
    '~standard': {
      version: 1,
      vendor: 'chokaq-demo',
      validate(value) {
        const fields = typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {}
        const issues = Object.entries(kinds)
          .filter(([name, kind]) => typeof fields[name] !== kind || fields[name] === null)
          .map(([name, kind]) => ({ message: `expected ${String(kind)}`, path: [name] }))
        return issues.length === 0 ? { value: fields as T } : { issues }
      },
    },
  }
}
