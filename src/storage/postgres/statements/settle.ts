/**
 * How an owned job ends or waits again:
 *
 *   complete                        -> archive, or dlq where another job's live marker stands   settle-complete.ts
 *   retry, defer, release           -> scheduled | pending                                      settle-rest.ts
 *   bury (and refuse), skip, cancel -> dlq | archive                                            settle-rest.ts
 *
 * Completions without children or effects, nearly all there is, share one statement. Those with children share a
 * transaction with the inserts, those with effects with the look for doubts, and the rest one that reads, decides and
 * writes. Each of the three is a batch of its own, so that the
 * usual case pays for nothing else, and each is cut in halves where a row is refused.
 *
 * The guard of all of them is (id, token, state): a row whose token has risen belongs to someone else by now. A settle
 * never raises the token, so where the guard finds nothing, the same (id, token) in the archive, in the DLQ or on a row
 * that waits again is this owner's own earlier settle, whose reply was lost; anything else is a lost lease.
 */
import { CounterSum } from '../../../core/counters.ts'
import { leaseId } from '../../../core/lease.ts'
import type { ArchiveOutcome, DeadReason } from '../../../core/job.ts'
import { ChokaQError, isTransient } from '../../../core/errors.ts'
import type { DeadChild, SettleAction, Settlement, SettleOutcome, SettleVerdict } from '../../../core/storage.ts'
import { bisected } from '../batches.ts'
import type { Session } from '../session.ts'
import type { Transaction, Unit } from '../transactions.ts'
import { deadChild, deadChildNews } from '../../dead-child.ts'
import { buryOnArrival } from './bury-on-arrival.ts'
import { enqueueAll } from './enqueue.ts'
import { complete, type Completion } from './settle-complete.ts'
import { buryDoubtful, settleRest } from './settle-rest.ts'
import { isUuid } from './uuid.ts'

type Run = <T>(unit: Unit<T>) => Promise<T>

const faults = { beforeCommit: 'settle-before-commit', committed: 'settle-committed', isRepeatable: true } as const

/**
 * settle: fetched | processing -> where the action says
 * Returns one verdict per settlement, in order. A settlement whose content the database refuses changes nothing.
 * Who: the owner.
 */
export async function settle(run: Run, settlements: readonly Settlement[]): Promise<readonly SettleVerdict[]> {
  const verdicts = new Map<Settlement, SettleVerdict>()
  // Of several settlements of one lease the first takes effect; the others are answered by what stands afterwards.
  const firsts = new Map<string, Settlement>()
  for (const settlement of settlements) {
    const { lease } = settlement
    if (!isUuid(lease.jobId)) verdicts.set(settlement, { kind: 'lost' })
    else if (!firsts.has(leaseId(lease))) firsts.set(leaseId(lease), settlement)
  }
  for (const [group, work] of groupsOf([...firsts.values()])) {
    const answers = await bisected(group, (rows) => run({ ...faults, ...work(rows) }), refusal)
    answers.forEach((verdict, n) => {
      const settlement = group[n]
      if (settlement !== undefined && verdict !== undefined) verdicts.set(settlement, verdict)
    })
  }
  const open = settlements.filter((settlement) => !verdicts.has(settlement))
  const found =
    open.length === 0
      ? []
      : await run({ isOneStatement: true, isRepeatable: true, work: ({ session }) => readBack(session, open) })
  open.forEach((settlement, n) => verdicts.set(settlement, found[n] ?? { kind: 'lost' }))
  return settlements.map((settlement) => verdicts.get(settlement) ?? { kind: 'lost' })
}

type Group = readonly [
  rows: readonly Settlement[],
  work: (rows: readonly Settlement[]) => Unit<readonly (SettleVerdict | undefined)[]>,
]

function groupsOf(settlements: readonly Settlement[]): readonly Group[] {
  const isPlain = ({ action }: Settlement): boolean =>
    action.kind === 'complete' && action.children.length === 0 && action.guard !== true
  const isCareful = (settlement: Settlement): boolean => settlement.action.kind === 'complete' && !isPlain(settlement)
  const groups: readonly Group[] = [
    [
      settlements.filter(isPlain),
      (rows) => ({
        isOneStatement: true,
        work: async (tx) => verdictsOf(rows, await complete(tx, rows as Completion[])),
      }),
    ],
    [settlements.filter(isCareful), (rows) => ({ work: (tx) => completeCarefully(tx, rows as Completion[]) })],
    [
      settlements.filter(({ action }) => action.kind !== 'complete'),
      (rows) => ({ work: async (tx) => verdictsOf(rows, await settleRest(tx, rows)) }),
    ],
  ]
  return groups.filter(([rows]) => rows.length > 0)
}

/** A lock that did not come in time says nothing against the row's content: the call as a whole may be repeated. */
function refusal(_settlement: Settlement, error: Error): SettleVerdict {
  const isContent = !isTransient(error) || !('code' in error) || error.code === 'CHOKAQ_STORAGE_FAILED'
  if (!isContent) throw error
  return { kind: 'refused', error }
}

function verdictsOf(
  rows: readonly Settlement[],
  outcomes: ReadonlyMap<string, SettleOutcome>,
): readonly (SettleVerdict | undefined)[] {
  return rows.map(({ lease }) => {
    const outcome = outcomes.get(leaseId(lease))
    return outcome === undefined ? undefined : { kind: 'settled', outcome, repeated: false }
  })
}

/**
 * Effects in doubt are looked for under the lock of their rows, and bury instead. The children come after their parents'
 * markers: a child with its parent's key is a duplicate.
 */
async function completeCarefully(
  tx: Transaction,
  completions: readonly Completion[],
): Promise<readonly (SettleVerdict | undefined)[]> {
  const guarded = completions.filter(({ action }) => action.guard === true)
  const buried = await buryDoubtful(tx, guarded)
  const clear = completions.filter(({ lease }) => !buried.has(leaseId(lease)))
  const outcomes = await complete(tx, clear)
  const children = clear.flatMap(({ lease, action }) =>
    outcomes.get(leaseId(lease)) === 'completed' ? action.children.map((job) => ({ job, parent: leaseId(lease) })) : [],
  )
  const counters = new CounterSum()
  const jobs = children.map(({ job }) => job)
  const verdicts = await enqueueAll(tx, jobs, counters)
  // A child whose key or id is held for another payload would be lost silently; it waits for a person instead.
  const deadOf = new Map<string, DeadChild[]>()
  for (const [n, verdict] of verdicts.entries()) {
    const child = children[n]
    const dead = child === undefined ? undefined : deadChild(child.job, verdict)
    if (child === undefined || dead === undefined || !(await buryOnArrival(tx, dead))) continue
    // Accepted with its parent, and dead at once: counted as both, so that the books balance.
    counters.add('jobs.enqueued', child.job)
    deadOf.set(child.parent, [...(deadOf.get(child.parent) ?? []), deadChildNews(dead)])
  }
  await tx.session.addCounters(counters)
  return completions.map(({ lease }) => {
    const outcome = buried.get(leaseId(lease)) ?? outcomes.get(leaseId(lease))
    if (outcome === undefined) return undefined
    const deadChildren = deadOf.get(leaseId(lease))
    return { kind: 'settled', outcome, repeated: false, ...(deadChildren === undefined ? {} : { deadChildren }) }
  })
}

const selectIsolation = `SELECT pg_catalog.current_setting('transaction_isolation') AS level`

/** Throws where statements see what stood when the transaction began: an effect in doubt since then would be missed. */
export async function refuseOldSnapshot(session: Session): Promise<void> {
  const level = (await session.get<{ readonly level: string }>(selectIsolation))?.level
  if (level === 'read committed' || level === 'read uncommitted') return
  const problem = `its isolation level is ${level}, under which effects recorded since it began are not seen; use read committed`
  throw new ChokaQError('CHOKAQ_TX_UNSUPPORTED', { call: 'ctx.complete', problem })
}

/** One settlement inside a transaction that somebody else commits. */
export async function settleInside(tx: Transaction, settlement: Settlement): Promise<SettleVerdict> {
  if (!isUuid(settlement.lease.jobId)) return { kind: 'lost' }
  const [verdict] =
    settlement.action.kind === 'complete'
      ? await completeCarefully(tx, [settlement as Completion])
      : verdictsOf([settlement], await settleRest(tx, [settlement]))
  if (verdict !== undefined) return verdict
  return (await readBack(tx.session, [settlement]))[0] ?? { kind: 'lost' }
}

const selectSettled = `
  SELECT r.n,
    (SELECT a.outcome FROM chokaq.jobs_archive a WHERE a.id = r.id AND a.token = r.token) AS outcome,
    (SELECT d.reason FROM chokaq.jobs_dlq d WHERE d.id = r.id AND d.token = r.token) AS reason,
    EXISTS (SELECT FROM chokaq.jobs_hot h WHERE h.id = r.id AND h.token = r.token AND h.token > 0
      AND h.state IN ('scheduled', 'pending'))::int AS is_waiting
  FROM json_to_recordset($1::text::json) AS r(n integer, id uuid, token bigint) ORDER BY r.n`

interface SettledRow {
  readonly outcome: ArchiveOutcome | null
  readonly reason: DeadReason | null
  readonly is_waiting: number
}

async function readBack(session: Session, settlements: readonly Settlement[]): Promise<readonly SettleVerdict[]> {
  const leases = settlements.map(({ lease }, n) => ({ n, id: lease.jobId, token: lease.token }))
  const rows = await session.all<SettledRow>(selectSettled, JSON.stringify(leases))
  return settlements.map(({ action }, n) => {
    const row = rows[n]
    return row === undefined ? { kind: 'lost' } : earlierVerdict(action, row)
  })
}

function earlierVerdict(action: SettleAction, { outcome, reason, is_waiting }: SettledRow): SettleVerdict {
  const settled = (earlier: SettleOutcome): SettleVerdict => ({ kind: 'settled', outcome: earlier, repeated: true })
  if (outcome !== null) return settled(outcome)
  if (reason !== null) return settled(reason === 'CompleteConflict' ? 'conflict' : 'dead')
  if (is_waiting === 0) return { kind: 'lost' }
  if (action.kind === 'defer') return settled('deferred')
  return settled(action.kind === 'release' ? 'released' : 'retried')
}
