/**
 * The books are compared here: what the sender sent, what the database says of each job, what stands in the provider's
 * ledger and in the shop's orders. A pure function; every disagreement becomes a sentence.
 */
import type { ClaimOutcome } from '../../core/counters.ts'
import type { ArchiveOutcome, DeadReason, HotState } from '../../core/job.ts'
import { amountOf, paymentAttemptOf, type DeliveryRole } from './deliveries.ts'
import type { ClaimFact } from './claims.ts'
import { minChargeKills, minKills } from './settings.ts'
import type { OrderRow } from './orders.ts'
import type { Charge } from './provider/ledger.ts'
import { providerNames, providerOf, type ProviderName } from './provider/names.ts'
import type { ReviewDecision } from './reviewer.ts'

/** One HTTP request as its sender saw it end. */
export interface SentRequest {
  readonly deliveryId: string
  readonly role: DeliveryRole
  /** What the receiver answered; 'refused' where it never answered 2xx. */
  readonly outcome: string
}

/** A job as the database has it. */
export interface JobFact {
  readonly id: string
  readonly kind: 'charge' | 'order'
  readonly state: HotState | ArchiveOutcome | 'dead'
  readonly reason: DeadReason | null
  readonly paymentAttemptId: string
  readonly attempt: number
  /** Recorded calls of its effect: each had its intent written before. */
  readonly callCount: number
  /** Why attempts ended without success, as recorded on the job. */
  readonly causes: readonly string[]
}

/** A handler that had begun and not ended when its process was killed. */
export interface Interruption {
  readonly jobId: string
  readonly kind: 'charge' | 'order'
  readonly attempt: number
}

export interface KillFact {
  readonly worker: string
  readonly interruptions: readonly Interruption[]
  /** Requests of this worker that the provider had not answered yet, by the provider's own log. */
  readonly chargesInFlight: number
  /** Kill to the first job taken back, milliseconds; null where nobody reported it. */
  readonly rescuedAfterMs: number | null
}

export interface Evidence {
  readonly isProtected: boolean
  readonly sent: readonly SentRequest[]
  readonly jobs: readonly JobFact[]
  readonly charges: readonly Charge[]
  readonly orders: readonly OrderRow[]
  readonly kills: readonly KillFact[]
  /** Jobs whose doubt ended because the provider was asked, as the workers told. */
  readonly reconciledJobIds: readonly string[]
  /** What the person decided. */
  readonly decisions: readonly ReviewDecision[]
  readonly claims: readonly ClaimFact[]
}

/** Payments of one provider, and how doubts about them ended. */
export interface ProviderAccount {
  readonly provider: ProviderName
  readonly paymentCount: number
  readonly chargeCount: number
  /** Payments of which at some moment nobody knew whether the money had moved. */
  readonly inDoubtCount: number
  readonly reconciledCount: number
  readonly adoptedCount: number
  readonly retriedCount: number
}

export interface Account {
  readonly requestCount: number
  readonly deliveryCount: number
  readonly redeliveryCount: number
  /** Redeliveries by what they were and what the receiver answered. */
  readonly duplicates: readonly { readonly role: DeliveryRole; readonly outcome: string; readonly count: number }[]
  readonly completedCount: number
  readonly lost: readonly string[]
  readonly conflictCount: number
  readonly deadCount: number
  readonly killCount: number
  readonly handlerKillCount: number
  readonly chargeKillCount: number
  readonly interruptedCount: number
  readonly extraAttempts: readonly { readonly why: string; readonly count: number }[]
  /** How many payment attempts have 0, 1, 2 … charges in the ledger. */
  readonly attemptsByCharges: readonly { readonly charges: number; readonly attempts: number }[]
  readonly chargeCount: number
  readonly providers: readonly ProviderAccount[]
  readonly doubleCount: number
  readonly overchargedCents: number
  /** Claims of keys by outcome, all seven. */
  readonly claims: readonly { readonly outcome: ClaimOutcome; readonly count: number }[]
  readonly orderCount: number
  readonly rewrittenOrderCount: number
  readonly problems: readonly string[]
}

/** The job keeps its last ten causes. */
const keptCauses = 10

export function account(evidence: Evidence): Account {
  const deliveries = [...new Set(evidence.sent.map(({ deliveryId }) => deliveryId))]
  const charges = groupBy(evidence.charges, (charge) => charge.paymentAttemptId)
  const fate = fates(evidence, deliveries)
  const killed = killSummary(evidence)
  const extra = extraAttempts(evidence)
  const perAttempt = deliveries.map((id) => charges.get(paymentAttemptOf(id))?.length ?? 0)
  const overcharges = [...charges.values()].flatMap((made) => made.slice(1))
  return {
    requestCount: evidence.sent.length,
    deliveryCount: deliveries.length,
    redeliveryCount: evidence.sent.filter(({ role }) => role !== 'first').length,
    duplicates: duplicatesByOutcome(evidence.sent),
    completedCount: fate.completed.length,
    lost: fate.lost,
    conflictCount: evidence.jobs.filter(isConflict).length,
    deadCount: evidence.jobs.filter((job) => job.state === 'dead' && !isConflict(job)).length,
    ...killed,
    extraAttempts: extra.counts,
    attemptsByCharges: countBy(perAttempt, (count) => count)
      .map(([charges, attempts]) => ({ charges, attempts }))
      .sort((a, b) => a.charges - b.charges),
    chargeCount: evidence.charges.length,
    providers: providerAccounts(evidence, deliveries),
    doubleCount: perAttempt.filter((count) => count > 1).length,
    overchargedCents: overcharges.reduce((sum, { amountCents }) => sum + amountCents, 0),
    claims: evidence.claims.map(({ outcome, storedCount: count }) => ({ outcome, count })),
    orderCount: evidence.orders.length,
    rewrittenOrderCount: evidence.orders.filter(({ writtenCount }) => writtenCount > 1).length,
    problems: [
      ...fate.problems,
      ...chargeProblems(evidence, deliveries, charges),
      ...orderProblems(evidence, deliveries, charges),
      ...conflictProblems(evidence),
      ...claimProblems(evidence),
      ...extra.problems,
      ...killProblems(killed),
    ],
  }
}

function isConflict(job: JobFact): boolean {
  return job.state === 'dead' && job.reason === 'KeyReused'
}

/** Every delivery that was accepted must have ended, and well. Lost: accepted, and the database knows nothing of it. */
function fates(
  { sent, jobs }: Evidence,
  deliveries: readonly string[],
): { completed: readonly string[]; lost: readonly string[]; problems: readonly string[] } {
  const accepted = new Set(sent.filter(({ outcome }) => outcome !== 'refused').map(({ deliveryId }) => deliveryId))
  const real = jobs.filter((job) => !isConflict(job))
  const byAttempt = groupBy(
    real.filter(({ kind }) => kind === 'charge'),
    ({ paymentAttemptId }) => paymentAttemptId,
  )
  const completed: string[] = []
  const lost: string[] = []
  const problems: string[] = []
  for (const id of deliveries) {
    const own = byAttempt.get(paymentAttemptOf(id)) ?? []
    if (own.some(({ state }) => state === 'completed')) completed.push(id)
    else if (!accepted.has(id)) problems.push(`delivery ${id} was never accepted`)
    else if (own.length === 0) lost.push(id)
  }
  problems.push(...lost.map((id) => `delivery ${id} was accepted and is lost`))
  for (const { id, kind, state, reason } of real) {
    if (state === 'dead') problems.push(`${kind} job ${id} is dead: ${reason}`)
    else if (state !== 'completed' && state !== 'skipped') problems.push(`${kind} job ${id} is still ${state}`)
  }
  return { completed, lost, problems }
}

function chargeProblems(
  { charges: all }: Evidence,
  deliveries: readonly string[],
  charges: ReadonlyMap<string, readonly Charge[]>,
): readonly string[] {
  const wanted = new Map(deliveries.map((id) => [paymentAttemptOf(id), amountOf(id)]))
  const problems: string[] = []
  for (const [attempt, amountCents] of wanted) {
    const made = charges.get(attempt) ?? []
    if (made.length === 0) problems.push(`${attempt} was never charged`)
    if (made.length > 1) problems.push(`${attempt} was charged ${made.length} times`)
    if (made.some(({ provider }) => provider !== providerOf(attempt)))
      problems.push(`${attempt} was charged by the wrong provider`)
    if (made.some((charge) => charge.amountCents !== amountCents))
      problems.push(`${attempt} was charged a wrong amount`)
  }
  for (const { paymentAttemptId, chargeId } of all) {
    if (!wanted.has(paymentAttemptId)) problems.push(`charge ${chargeId} belongs to no delivery: ${paymentAttemptId}`)
  }
  return problems
}

function providerAccounts(
  { charges, jobs, reconciledJobIds, decisions }: Evidence,
  deliveries: readonly string[],
): readonly ProviderAccount[] {
  const byId = new Map(jobs.map(({ id, paymentAttemptId }) => [id, paymentAttemptId]))
  const reconciled = new Set(reconciledJobIds.map((id) => byId.get(id) ?? ''))
  const reviewed = new Set(decisions.map(({ paymentAttemptId }) => paymentAttemptId))
  // A call is repeated only after the one before it was in doubt.
  const repeated = new Set(
    jobs.filter(({ callCount }) => callCount > 1).map(({ paymentAttemptId }) => paymentAttemptId),
  )
  return providerNames.map((provider) => {
    const isOurs = (attempt: string): boolean => providerOf(attempt) === provider
    const attempts = deliveries.map(paymentAttemptOf).filter(isOurs)
    const countOf = (decision: ReviewDecision['decision']): number =>
      decisions.filter((one) => one.decision === decision && isOurs(one.paymentAttemptId)).length
    return {
      provider,
      paymentCount: attempts.length,
      chargeCount: charges.filter((charge) => charge.provider === provider).length,
      inDoubtCount: attempts.filter((a) => repeated.has(a) || reconciled.has(a) || reviewed.has(a)).length,
      reconciledCount: attempts.filter((attempt) => reconciled.has(attempt)).length,
      adoptedCount: countOf('adopt'),
      retriedCount: countOf('retry'),
    }
  })
}

function orderProblems(
  { orders }: Evidence,
  deliveries: readonly string[],
  charges: ReadonlyMap<string, readonly Charge[]>,
): readonly string[] {
  const byAttempt = new Map(orders.map((order) => [order.paymentAttemptId, order]))
  return deliveries.map(paymentAttemptOf).flatMap((attempt) => {
    const order = byAttempt.get(attempt)
    if (order === undefined) return [`${attempt} has no order`]
    const isKnown = (charges.get(attempt) ?? []).some(({ chargeId }) => chargeId === order.chargeId)
    return isKnown ? [] : [`the order of ${attempt} names a charge that the provider does not know`]
  })
}

/** A changed body under a known id must be kept as one dead row, and must not have run. */
function conflictProblems({ isProtected, sent, jobs }: Evidence): readonly string[] {
  const changed = new Set(
    sent.filter(({ role }) => role === 'changed').map(({ deliveryId }) => paymentAttemptOf(deliveryId)),
  )
  const rows = groupBy(jobs.filter(isConflict), ({ paymentAttemptId }) => paymentAttemptId)
  const stray = [...rows.keys()]
    .filter((attempt) => !changed.has(attempt))
    .map((attempt) => `${attempt} has a KeyReused row, and nobody changed its body`)
  if (!isProtected) return stray
  const uneven = [...changed]
    .filter((attempt) => rows.get(attempt)?.length !== 1)
    .map(
      (attempt) => `the changed body of ${attempt} left ${rows.get(attempt)?.length ?? 0} KeyReused rows instead of 1`,
    )
  return [...stray, ...uneven]
}

/** The counters must say what the rows say, and `/metrics` what the counters say. */
function claimProblems({ claims, jobs, isProtected }: Evidence): readonly string[] {
  const problems = claims
    .filter(({ storedCount, scrapedCount }) => scrapedCount !== null && scrapedCount !== storedCount)
    .map(
      ({ outcome, storedCount, scrapedCount }) =>
        `/metrics has ${scrapedCount} claims "${outcome}", the database ${storedCount}`,
    )
  const countOf = (outcome: ClaimOutcome): number => claims.find((claim) => claim.outcome === outcome)?.storedCount ?? 0
  const keyed = jobs.filter(({ kind }) => isProtected || kind === 'order')
  const completedCount = keyed.filter(({ state }) => state === 'completed').length
  if (countOf('completed') !== completedCount)
    problems.push(`${countOf('completed')} claims ended as completed, and ${completedCount} jobs with a key did`)
  if (countOf('complete_conflict') > 0) problems.push(`${countOf('complete_conflict')} jobs completed beside another`)
  return problems
}

function duplicatesByOutcome(sent: readonly SentRequest[]): Account['duplicates'] {
  return countBy(repeatsOf(sent), ({ role, outcome }) => `${role} ${outcome}`)
    .map(([pair, count]) => {
      const [role = '', outcome = ''] = pair.split(' ')
      return { role: role as DeliveryRole, outcome, count }
    })
    .sort((a, b) => `${a.role} ${a.outcome}`.localeCompare(`${b.role} ${b.outcome}`))
}

/** Of requests sent at the same moment any may come first; the first is the one that made the job. */
function repeatsOf(sent: readonly SentRequest[]): readonly SentRequest[] {
  return [...groupBy(sent, ({ deliveryId }) => deliveryId).values()].flatMap((requests) => {
    const [first] = requests.filter(({ role }) => role === 'first')
    const winner = requests.find(({ role, outcome }) => role === 'together' && outcome === 'enqueued')
    const repeats = requests.filter(({ role }) => role !== 'first')
    if (first === undefined || first.outcome === 'enqueued' || winner === undefined) return repeats
    return repeats.map((one) => (one === winner ? { ...one, outcome: first.outcome } : one))
  })
}

/** Each start beyond the first has a cause that stands on the job. */
function extraAttempts({ jobs }: Evidence): { counts: Account['extraAttempts']; problems: readonly string[] } {
  const real = jobs.filter((job) => !isConflict(job))
  const counts = countBy(
    real.flatMap(({ causes }) => causes),
    (cause) => cause,
  ).map(([why, count]) => ({ why, count }))
  const problems = real.flatMap(({ id, attempt, causes }) => {
    const unknown = Math.min(attempt - 1, keptCauses) - causes.length
    return unknown > 0 ? [`job ${id} was started again without a known cause, ${unknown} times`] : []
  })
  return { counts: counts.sort((a, b) => b.count - a.count), problems }
}

/** A kill counts where a handler it interrupted was started again afterwards: the attempt of its job has risen. */
function killSummary({ kills, jobs }: Evidence) {
  const attempts = new Map(jobs.map(({ id, attempt }) => [id, attempt]))
  const confirmed = kills.map(({ interruptions, chargesInFlight }) => {
    const repeated = interruptions.filter(({ jobId, attempt }) => (attempts.get(jobId) ?? 0) > attempt)
    return { repeated, isCharging: chargesInFlight > 0 && repeated.some(({ kind }) => kind === 'charge') }
  })
  return {
    killCount: kills.length,
    handlerKillCount: confirmed.filter(({ repeated }) => repeated.length > 0).length,
    chargeKillCount: confirmed.filter(({ isCharging }) => isCharging).length,
    interruptedCount: confirmed.reduce((sum, { repeated }) => sum + repeated.length, 0),
  }
}

function killProblems(killed: ReturnType<typeof killSummary>): readonly string[] {
  const { handlerKillCount, chargeKillCount } = killed
  return [
    ...(handlerKillCount < minKills ? [`only ${handlerKillCount} of ${minKills} kills interrupted a handler`] : []),
    ...(chargeKillCount < minChargeKills ? [`only ${chargeKillCount} of ${minChargeKills} kills hit a charge`] : []),
  ]
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return groups
}

function countBy<T, K>(items: readonly T[], keyOf: (item: T) => K): [K, number][] {
  const counts = new Map<K, number>()
  for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1)
  return [...counts]
}
