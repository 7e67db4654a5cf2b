/**
 * What GitHub sends in this run: each delivery once, and a third of all requests again. A pure function of the seed, so
 * the same seed sends the same requests in the same order.
 */
import { createHash } from 'node:crypto'
import { createSeededRandom, type SeededRandom } from '../../testing/seeded-random.ts'
import type { WebhookExample } from './examples.ts'

/**
 * `first`: the first request of a delivery. `together`: the same body again, at the same moment. `soon`: again, a
 * little later. `changed`: the same delivery id with another body. `settled`: again, after everything is done.
 */
export type DeliveryRole = 'first' | 'together' | 'soon' | 'changed' | 'settled'

export interface PlannedDelivery {
  readonly deliveryId: string
  readonly event: string
  /** JSON text: the body that is signed and sent. */
  readonly body: string
  readonly role: DeliveryRole
}

export interface DeliveryPlan {
  /** Requests of one group are sent at the same moment. */
  readonly live: readonly (readonly PlannedDelivery[])[]
  /** Sent after all jobs have ended. */
  readonly settled: readonly PlannedDelivery[]
  readonly uniqueCount: number
  readonly redeliveryCount: number
  readonly kindCount: number
  readonly exampleCount: number
}

/** Fewer would leave too little work for the kills to interrupt. */
export const minDeliveries = 60
/** How many of the requests are redeliveries. */
const redeliveryShare = 1 / 3
const minConflicts = 2
const requestsPerConflict = 150

export function planDeliveries(seed: number, requestCount: number, examples: readonly WebhookExample[]): DeliveryPlan {
  const random = createSeededRandom(seed).fork('deliveries')
  const redeliveryCount = Math.ceil(requestCount * redeliveryShare)
  const firsts = firstDeliveries(random, requestCount - redeliveryCount, examples)
  const groups: PlannedDelivery[][] = firsts.map((first) => [first])
  const conflictCount = Math.max(minConflicts, Math.round(requestCount / requestsPerConflict))
  const repeatCount = redeliveryCount - conflictCount
  const togetherCount = Math.ceil(repeatCount * 0.4)
  const settledCount = Math.floor(repeatCount * 0.25)
  const roles = Array.from({ length: repeatCount }, (_, i): DeliveryRole =>
    i < togetherCount ? 'together' : i < togetherCount + settledCount ? 'settled' : 'soon',
  )
  const settled: PlannedDelivery[] = []
  const later: { readonly after: number; readonly delivery: PlannedDelivery }[] = []
  for (const role of roles) {
    const at = random.int(0, firsts.length - 1)
    const first = nth(firsts, at)
    if (role === 'together') nth(groups, at).push({ ...first, role })
    else if (role === 'settled') settled.push({ ...first, role })
    else later.push({ after: at + random.int(1, 25), delivery: { ...first, role } })
  }
  for (const at of random.shuffle([...firsts.keys()]).slice(0, conflictCount)) {
    later.push({ after: at + random.int(1, 25), delivery: changed(nth(firsts, at)) })
  }
  return {
    live: interleave(groups, later),
    settled: random.shuffle(settled),
    uniqueCount: firsts.length,
    redeliveryCount,
    kindCount: new Set(firsts.map(({ event }) => event)).size,
    exampleCount: Math.min(firsts.length, examples.length),
  }
}

/** Every example once before any comes twice. Two deliveries with the same payload have two ids: two operations. */
function firstDeliveries(random: SeededRandom, count: number, examples: readonly WebhookExample[]): PlannedDelivery[] {
  const shuffled = random.shuffle(examples)
  return Array.from({ length: count }, (_, i) => {
    const { event, payload } = nth(shuffled, i % shuffled.length)
    return { deliveryId: uuidFrom(random), event, body: JSON.stringify(payload), role: 'first' }
  })
}

function changed(first: PlannedDelivery): PlannedDelivery {
  const payload = JSON.parse(first.body) as Record<string, unknown>
  return { ...first, role: 'changed', body: JSON.stringify({ ...payload, changed_since: 'the first delivery' }) }
}

function interleave(
  groups: readonly PlannedDelivery[][],
  later: readonly { readonly after: number; readonly delivery: PlannedDelivery }[],
): PlannedDelivery[][] {
  return groups.flatMap((group, at) => {
    const isLast = at === groups.length - 1
    const due = later.filter(({ after }) => after === at || (isLast && after > at))
    return [group, ...due.map(({ delivery }) => [delivery])]
  })
}

function uuidFrom(random: SeededRandom): string {
  const hex = createHash('sha256').update(`${random.next()} ${random.next()}`).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** A delivery is one payment attempt. */
export function paymentAttemptOf(deliveryId: string): string {
  return `pa_${deliveryId}`
}

/** What a delivery costs: between one cent and a dollar, and always the same for the same delivery. */
export function amountOf(deliveryId: string): number {
  return 1 + (createHash('sha256').update(deliveryId).digest().readUInt16BE(0) % 100)
}

function nth<T>(items: readonly T[], index: number): T {
  const item = items[index]
  if (item === undefined) throw new RangeError(`no item ${index} of ${items.length}`)
  return item
}
