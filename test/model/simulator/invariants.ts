// What must hold of every history, whatever went wrong. Each check is one sentence of the guarantees; its number is that
// of the invariant list.
import { backoffMs, resolveRetryPolicy } from '../../../src/core/retry-policy.ts'
import type { TimedEntry } from './history.ts'
import { crashBudget, retry, review } from './handlers.ts'
import { limit, limitedQueue, type Simulation } from './simulate.ts'

/** Every violation as a sentence; empty where all hold. */
export function violations(simulation: Simulation): readonly string[] {
  return checks.flatMap(({ id, holds }) => holds(simulation).map((text) => `${id}: ${text}`))
}

interface Check {
  readonly id: string
  readonly holds: (simulation: Simulation) => readonly string[]
}

const checks: readonly Check[] = [
  { id: 'I1 and I12: no accepted job is lost or forgotten', holds: nothingLost },
  { id: 'I2 and I4: nothing from nowhere, payloads as sent', holds: payloadsAsSent },
  { id: 'I3 and I17: one job per operation, and duplicates tell the truth', holds: duplicatesTellTheTruth },
  { id: 'I5 and I6: one valid owner, tokens only rise, stale writers change nothing', holds: oneOwner },
  { id: 'I6: no handler is called under a lost lease', holds: noStaleRun },
  { id: 'I7: one terminal transition', holds: oneEnd },
  { id: 'I8 and I9: budgets', holds: budgets },
  { id: 'review: a handler with an unguarded side effect runs again only after typed proof', holds: reviewsPark },
  { id: 'liveness: only a worker that failed to speak is rescued from', holds: nobodyIsKilledFalsely },
  { id: 'I11: never early', holds: neverEarly },
  { id: 'I13: retry times follow the rule', holds: retryTimes },
  { id: 'I15: queue limits hold', holds: limitsHold },
  { id: 'I19: one live claim per key, and none after completion', holds: claimsHold },
  { id: 'I21: conservation', holds: conservation },
  { id: 'I23: cancel and pause are real', holds: cancelAndPause },
]

function nothingLost({ history, rows }: Simulation): string[] {
  const byId = new Map(rows.map((row) => [row.id, row]))
  const accepted = new Set(history.of('answer').flatMap(({ outcome, id }) => (outcome === 'enqueued' ? [id] : [])))
  const lost = [...accepted].filter((id) => !byId.has(id)).map((id) => `job ${id} was accepted and is nowhere`)
  const stuck = rows.filter(({ pillar }) => pillar === 'hot')
  return [...lost, ...stuck.map((row) => `job ${row.id} is still ${row.state} long after the last fault`)]
}

function payloadsAsSent({ history, rows }: Simulation): string[] {
  const sent = new Map(history.of('enqueue').map(({ row }) => [row.id, row.payload]))
  // Children commit with their parent: no enqueue call tells of them.
  for (const row of rows) if (row.parentId !== null && row.payload !== null) sent.set(row.id, row.payload)
  return history
    .of('run')
    .filter(({ jobId, payload }) => sent.get(jobId) !== payload)
    .map(({ jobId, payload }) => `job ${jobId} ran with ${payload}, sent was ${String(sent.get(jobId))}`)
}

function duplicatesTellTheTruth({ history, rows }: Simulation): string[] {
  const problems: string[] = []
  const inserted = new Set<string>()
  for (const { row, verdict } of history.of('enqueue')) {
    if (verdict.kind === 'inserted') {
      if (inserted.has(row.id)) problems.push(`job ${row.id} was inserted twice`)
      inserted.add(row.id)
    } else if ('jobId' in verdict && !inserted.has(verdict.jobId)) {
      problems.push(`a duplicate of ${row.id} names ${verdict.jobId}, which was never inserted`)
    } else if (verdict.kind === 'resent' && !inserted.has(row.id)) {
      problems.push(`job ${row.id} was resent and never sent`)
    }
  }
  const ids = rows.map(({ id }) => id)
  if (new Set(ids).size !== ids.length) problems.push('a job is in two pillars')
  return problems
}

function oneOwner({ history }: Simulation): string[] {
  const problems: string[] = []
  const owned = new Map<string, number>()
  const newest = new Map<string, number>()
  // A disown names no jobs: what it took back may be fetched again.
  let disowned = 0
  for (const entry of history.entries) {
    if (entry.kind === 'disown') disowned += entry.count
    else if (entry.kind === 'rescue') owned.delete(entry.jobId)
    else if (entry.kind === 'fetch') {
      const { jobId, token } = entry
      if (token <= (newest.get(jobId) ?? 0)) problems.push(`job ${jobId} was fetched with an old token ${token}`)
      if (owned.has(jobId) && (disowned -= 1) < 0) problems.push(`job ${jobId} was fetched while it was owned`)
      owned.set(jobId, token)
      newest.set(jobId, token)
    } else if (entry.kind === 'settle' && entry.verdict.kind === 'settled' && !entry.verdict.repeated) {
      const { jobId, token } = entry
      if (owned.get(jobId) !== token) problems.push(`job ${jobId} was settled under ${token}, which does not own it`)
      owned.delete(jobId)
    } else if (entry.kind === 'start' && owned.get(entry.jobId) !== entry.token) {
      problems.push(`job ${entry.jobId} was started under ${entry.token}, which does not own it`)
    }
  }
  return problems
}

function noStaleRun({ history }: Simulation): string[] {
  const problems: string[] = []
  const newest = new Map<string, number>()
  for (const entry of history.entries) {
    if (entry.kind === 'start' || (entry.kind === 'fetch' && entry.state === 'processing')) {
      newest.set(entry.jobId, entry.attempt)
    }
    if (entry.kind === 'run' && entry.attempt < (newest.get(entry.jobId) ?? 0)) {
      problems.push(`attempt ${entry.attempt} of ${entry.jobId} was called when a later one had started`)
    }
  }
  return problems
}

const endings: ReadonlySet<string> = new Set(['completed', 'conflict', 'dead', 'skipped', 'cancelled'])

/** The job that this entry ended for good. */
function ended(entry: TimedEntry): string | undefined {
  if (entry.kind === 'rescue') return entry.went === 'pending' ? undefined : entry.jobId
  if (entry.kind === 'cancel') return entry.verdict === 'cancelled' ? entry.jobId : undefined
  if (entry.kind !== 'settle' || entry.verdict.kind !== 'settled' || entry.verdict.repeated) return undefined
  return endings.has(entry.verdict.outcome) ? entry.jobId : undefined
}

function oneEnd({ history }: Simulation): string[] {
  const problems: string[] = []
  const over = new Set<string>()
  for (const entry of history.entries) {
    const jobId = ended(entry)
    if (jobId === undefined) continue
    if (over.has(jobId)) problems.push(`job ${jobId} ended twice, the second time by ${entry.kind}`)
    over.add(jobId)
  }
  return problems
}

function budgets({ history, rows }: Simulation): string[] {
  const problems: string[] = []
  for (const row of rows) {
    if (row.failureCount > retry.attempts) problems.push(`job ${row.id} failed ${row.failureCount} times`)
    if (row.crashCount > crashBudget + 1) problems.push(`job ${row.id} crashed ${row.crashCount} times`)
    const isPoison = row.payload?.includes('"plan":["die"]') === true
    if (isPoison && row.state === 'completed') problems.push(`poison ${row.id} completed`)
  }
  const attempts = new Map<string, number>()
  for (const { jobId, attempt } of history.of('run')) {
    if (attempt <= (attempts.get(jobId) ?? 0)) problems.push(`job ${jobId} ran attempt ${attempt} twice`)
    attempts.set(jobId, attempt)
  }
  return problems
}

function reviewsPark({ history, rows }: Simulation): string[] {
  const problems: string[] = []
  const reviews = new Set(rows.flatMap((row) => (row.type === review.type ? [row.id] : [])))
  const running = new Set<string>()
  for (const entry of history.entries) {
    if (entry.kind === 'settle' && entry.verdict.kind === 'settled' && entry.action.kind === 'retry') {
      // A handler may give the proof in answer to an abort, too; what it may not do is simply throw.
      if (entry.action.reason !== 'failed') running.delete(entry.jobId)
    }
    if (entry.kind !== 'run' || !reviews.has(entry.jobId)) continue
    if (running.has(entry.jobId)) problems.push(`job ${entry.jobId} ran again, and nobody knows what it did before`)
    running.add(entry.jobId)
  }
  return problems
}

function nobodyIsKilledFalsely({ history }: Simulation): string[] {
  const problems: string[] = []
  const troubled = new Set<string>()
  const processOf = new Map<string, string>()
  for (const entry of history.entries) {
    if (entry.kind === 'kill' || entry.kind === 'freeze' || entry.kind === 'bad-connection') troubled.add(entry.process)
    if (entry.kind === 'register') processOf.set(entry.workerId, entry.process)
    if (entry.kind !== 'rescue') continue
    const process = processOf.get(entry.workerId)
    if (process !== undefined && !troubled.has(process)) problems.push(`${process} lived and ${entry.jobId} was taken`)
  }
  return problems
}

function neverEarly({ history }: Simulation): string[] {
  const problems: string[] = []
  const due = new Map<string, number>()
  for (const entry of history.entries) {
    if (entry.kind === 'enqueue' && entry.verdict.kind === 'inserted' && entry.row.due.kind === 'in') {
      due.set(entry.row.id, entry.atMs + entry.row.due.delayMs)
    }
    if (entry.kind === 'settle' && entry.verdict.kind === 'settled' && entry.verdict.outcome === 'retried') {
      if (entry.action.kind === 'retry' && !entry.verdict.repeated) {
        due.set(entry.jobId, entry.atMs + entry.action.delayMs)
      }
    }
    if (entry.kind === 'fetch' && entry.atMs < Math.floor(due.get(entry.jobId) ?? 0)) {
      problems.push(`job ${entry.jobId} was fetched ${(due.get(entry.jobId) ?? 0) - entry.atMs} ms early`)
    }
  }
  return problems
}

function retryTimes({ history }: Simulation): string[] {
  const policy = resolveRetryPolicy(retry)
  const isPossible = (ms: number): boolean =>
    Array.from({ length: retry.attempts }, (_, n) => n + 1).some(
      (n) => ms >= backoffMs(policy, n, 0) && ms <= backoffMs(policy, n, 1),
    )
  return history.of('settle').flatMap(({ jobId, action }) => {
    if (action.kind !== 'retry') return []
    if (action.charge === 'nothing')
      return action.delayMs === 2_000 || action.delayMs === 0 ? [] : [`job ${jobId} waits`]
    return isPossible(action.delayMs) ? [] : [`job ${jobId} waits ${action.delayMs} ms`]
  })
}

function limitsHold({ history }: Simulation): string[] {
  const owned = new Set<string>()
  const problems: string[] = []
  let disowned = 0
  for (const entry of history.entries) {
    if (entry.kind === 'disown') disowned += entry.count
    if (entry.kind === 'rescue') owned.delete(entry.jobId)
    if (entry.kind === 'settle' && entry.verdict.kind === 'settled' && !entry.verdict.repeated)
      owned.delete(entry.jobId)
    if (entry.kind !== 'fetch' || entry.queue !== limitedQueue) continue
    owned.add(entry.jobId)
    if (owned.size - disowned > limit) problems.push(`${owned.size} jobs of the limited queue are owned at once`)
  }
  return problems
}

function claimsHold({ history, rows }: Simulation): string[] {
  const problems: string[] = []
  const keyOf = new Map(rows.map((row) => [row.id, row.keyHash ?? undefined]))
  const completed = new Map<string, string>()
  for (const entry of history.entries) {
    if (entry.kind === 'settle' && entry.verdict.kind === 'settled' && entry.verdict.outcome === 'completed') {
      const key = keyOf.get(entry.jobId)
      const holder = key === undefined ? undefined : completed.get(key)
      if (holder !== undefined && holder !== entry.jobId)
        problems.push(`${holder} and ${entry.jobId} completed one key`)
      if (key !== undefined) completed.set(key, entry.jobId)
    }
    if (entry.kind === 'run') {
      const key = keyOf.get(entry.jobId)
      if (key !== undefined && completed.has(key)) problems.push(`job ${entry.jobId} ran after its key was completed`)
    }
  }
  return problems
}

function conservation({ rows, counters }: Simulation): string[] {
  const count = (state: string): number => rows.filter((row) => row.state === state).length
  const expected: readonly (readonly [string, number])[] = [
    ['jobs.enqueued', rows.length],
    ['jobs.completed', count('completed')],
    ['jobs.skipped', count('skipped')],
    ['jobs.cancelled', count('cancelled')],
    ['jobs.dlq', count('dead')],
    ['idempotency.claims complete_conflict', 0],
  ]
  return expected.flatMap(([name, rowCount]) =>
    (counters.get(name) ?? 0) === rowCount ? [] : [`${name} is ${counters.get(name) ?? 0}, rows say ${rowCount}`],
  )
}

function cancelAndPause({ history }: Simulation): string[] {
  const problems: string[] = []
  const cancelled = new Set<string>()
  const paused = new Set<string>()
  for (const entry of history.entries) {
    if (entry.kind === 'cancel' && entry.verdict === 'cancelled') cancelled.add(entry.jobId)
    if (entry.kind === 'pause') paused.add(entry.queue)
    if (entry.kind === 'resume') paused.delete(entry.queue)
    if (entry.kind === 'fetch' && paused.has(entry.queue))
      problems.push(`${entry.jobId} was fetched from a paused queue`)
    if (entry.kind === 'run' && cancelled.has(entry.jobId)) problems.push(`job ${entry.jobId} ran after its cancel`)
  }
  return problems
}
