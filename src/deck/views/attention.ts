/** What a person should look at first, worst first: pure rules over what was read. */
import { formatMs } from '../../core/duration.ts'
import type { QueueRow, WorkerRow } from '../../core/inspector.ts'
import type { AttentionView } from '../wire.ts'
import { isSilent } from './workers.ts'

export interface AttentionFacts {
  readonly nowMs: number
  readonly queues: readonly QueueRow[]
  readonly workers: readonly WorkerRow[]
  /** A count stops at its limit. */
  readonly review: { readonly count: number; readonly isExact: boolean }
  readonly conflictCount: number
  /** Types with a due job that no live worker runs. */
  readonly waitingTypes: readonly string[]
  /** Jobs that died within the last hour, from buckets. */
  readonly diedCount: number
}

type Rule = (facts: AttentionFacts) => readonly AttentionView[]

const lagWarningMs = 5_000
const lagCriticalMs = 60_000
/** So many deaths within an hour are no accident. */
const growthCount = 10
const maxEach = 5
const order = ['critical', 'warning', 'notice'] as const

export function attentionOf(facts: AttentionFacts): readonly AttentionView[] {
  const found = rules.flatMap((rule) => rule(facts).slice(0, maxEach))
  return order.flatMap((level) => found.filter((each) => each.level === level))
}

const rules: readonly Rule[] = [conflicts, reviews, noWorkers, lags, unserved, unknownTypes, silence, pauses, growth]

function conflicts({ conflictCount }: AttentionFacts): readonly AttentionView[] {
  if (conflictCount === 0) return []
  const text = `${jobs(conflictCount)} completed under a key that another job had completed: this should be impossible`
  return [{ level: 'critical', text, href: 'jobs?pillar=dlq&reason=CompleteConflict' }]
}

function reviews({ review: { count, isExact } }: AttentionFacts): readonly AttentionView[] {
  if (count === 0) return []
  const text = `${isExact ? jobs(count) : `${count}+ jobs`} ${count === 1 ? 'waits' : 'wait'} for a decision: nobody knows whether the side effect happened`
  return [{ level: 'critical', text, href: 'review' }]
}

function noWorkers(facts: AttentionFacts): readonly AttentionView[] {
  const waiting = facts.queues.reduce((sum, { pendingCount }) => sum + pendingCount, 0)
  if (waiting === 0 || live(facts).length > 0) return []
  return [{ level: 'critical', text: `${jobs(waiting)} waiting, and no worker lives`, href: 'workers' }]
}

function lags({ queues }: AttentionFacts): readonly AttentionView[] {
  return queues
    .filter(({ paused, lagMs }) => !paused && (lagMs ?? 0) >= lagWarningMs)
    .sort((a, b) => (b.lagMs ?? 0) - (a.lagMs ?? 0))
    .map(({ name, lagMs = 0 }) => ({
      level: lagMs >= lagCriticalMs ? 'critical' : 'warning',
      text: `The oldest job of queue ${name} has waited for ${roughly(lagMs)}`,
      href: queueHref(name),
    }))
}

function unserved(facts: AttentionFacts): readonly AttentionView[] {
  if (live(facts).length === 0) return []
  const served = new Set(live(facts).flatMap(({ queues }) => queues))
  return facts.queues
    .filter(({ name, pendingCount, scheduledCount }) => pendingCount + scheduledCount > 0 && !served.has(name))
    .map(({ name, pendingCount, scheduledCount }) => ({
      level: pendingCount > 0 ? 'critical' : 'warning',
      text: `Queue ${name} has ${jobs(pendingCount + scheduledCount)}, and no live worker serves it`,
      href: queueHref(name),
    }))
}

function unknownTypes(facts: AttentionFacts): readonly AttentionView[] {
  if (live(facts).length === 0) return []
  return facts.waitingTypes.map((type) => ({
    level: 'critical',
    text: `Jobs of type ${type} wait, and no live worker has a handler for it`,
    href: `jobs?pillar=hot&type=${encodeURIComponent(type)}`,
  }))
}

function silence({ workers, nowMs }: AttentionFacts): readonly AttentionView[] {
  return workers
    .filter((worker) => isSilent(worker, nowMs))
    .map(({ name, beatAtMs, runningCount }) => ({
      level: 'warning',
      text: `Worker ${name} has been silent for ${roughly(nowMs - beatAtMs)}, with ${jobs(runningCount)}`,
      href: 'workers',
    }))
}

function pauses({ queues }: AttentionFacts): readonly AttentionView[] {
  return queues
    .filter(({ paused, pendingCount }) => paused && pendingCount > 0)
    .map(({ name, pendingCount }) => ({
      level: 'warning',
      text: `Queue ${name} is paused, with ${jobs(pendingCount)}`,
      href: queueHref(name),
    }))
}

function growth({ diedCount }: AttentionFacts): readonly AttentionView[] {
  if (diedCount < growthCount) return []
  return [{ level: 'warning', text: `${jobs(diedCount)} died within the last hour`, href: 'jobs?pillar=dlq' }]
}

function live({ workers, nowMs }: AttentionFacts): readonly WorkerRow[] {
  return workers.filter((worker) => !isSilent(worker, nowMs))
}

function queueHref(name: string): string {
  return `queues/${encodeURIComponent(name)}`
}

function jobs(count: number): string {
  return `${count} ${count === 1 ? 'job' : 'jobs'}`
}

/** People compare minutes and hours here, not milliseconds. */
function roughly(ms: number): string {
  for (const unit of [86_400_000, 3_600_000, 60_000, 1_000]) {
    if (ms >= unit) return formatMs(Math.floor(ms / unit) * unit)
  }
  return formatMs(Math.max(0, Math.floor(ms)))
}
