/** What the pages ask for: one function each, from the storage to what goes over the wire. */
import { maxObservedCalls, type QueueRow } from '../core/inspector.ts'
import type { JobRecord } from '../core/job.ts'
import { metricBucketMs } from '../core/metrics.ts'
import { actsOf } from './acts/job-acts.ts'
import { editObstacle } from './acts/edit-payload.ts'
import { decisionsFor, reviewView } from './acts/review-acts.ts'
import type { Context } from './context.ts'
import { stateOf } from './live.ts'
import { jobNotFound } from './problem.ts'
import { hiddenValues } from './redact.ts'
import { attentionOf } from './views/attention.ts'
import { checklistView } from './views/answers.ts'
import {
  auditView,
  effectView,
  errorViews,
  hiderOf,
  jobOfDetail,
  jobSummary,
  shownEffect,
  shownJob,
  type Hide,
} from './views/job.ts'
import { endedCount, metricQuery, seriesView, sumsOf } from './views/metrics.ts'
import { timelineOf } from './views/timeline.ts'
import { isSilent, queueView, workerView } from './views/workers.ts'
import type {
  AuditView,
  ChecklistView,
  MetricSeriesView,
  Overview,
  QueueView,
  Range,
  Session,
  WorkerView,
} from './wire.ts'
import type { JobDetail, ReviewDetail, ReviewView } from './wire-jobs.ts'
import type { LedgerRecord } from '../core/ledger.ts'
import { partsOf } from '../engine/parts.ts'
import { listReviews, showReview } from '../engine/reviews.ts'

const minute = 60_000
const hour = 60 * minute
/** Each asks the buckets once. */
const maxRatedQueues = 20
const maxDuplicates = 100
const maxAuditRows = 200
const maxUnservedTypes = 10
const maxConflicts = 1_000

export function session(context: Context): Session {
  const { identity, config, version, runtime } = context
  return {
    ...identity,
    version,
    source: sourceOf(partsOf(context.chokaq).location),
    nowMs: runtime.clock.nowMs(),
    redactedPaths: config.redaction.paths,
  }
}

/** A file's name, or host and database: no path of the machine and no credentials. */
function sourceOf(location: string): string {
  if (/^\w+:\/\//.test(location)) return location
  return location.split(/[\\/]/).at(-1) ?? location
}

export async function overview(context: Context, range: Range): Promise<Overview> {
  const { reads, runtime, live } = context
  const nowMs = runtime.clock.nowMs()
  const query = metricQuery(range, nowMs, {})
  const lastHour = { fromMs: nowMs - hour, toMs: nowMs, stepMs: minute }
  const [facts, series, died, conflicts] = await Promise.all([
    live.facts(),
    reads.metrics(query),
    reads.metrics(lastHour),
    reads.count({ pillar: 'dlq', filter: { inReview: true, reason: 'CompleteConflict' }, limit: maxConflicts }),
  ])
  const attention = attentionOf({
    ...facts,
    conflictCount: conflicts.count,
    waitingTypes: await waitingTypes(context),
    diedCount: sumsOf(died.points).dead,
  })
  return { ...seriesView(query, series), live: stateOf(facts), sums: sumsOf(series.points), attention }
}

/** Types with a due job that no live worker runs. Asked of types that were ever enqueued and nobody serves now. */
async function waitingTypes({ reads, live }: Context): Promise<readonly string[]> {
  const { stats, workers, queues, nowMs } = await live.facts()
  const alive = workers.filter((worker) => !isSilent(worker, nowMs))
  if (alive.length === 0 || queues.every(({ pendingCount }) => pendingCount === 0)) return []
  const served = new Set(alive.flatMap(({ types }) => types))
  const enqueued = stats.filter(({ name }) => name === 'jobs.enqueued').map(({ type }) => type)
  const unserved = [...new Set(enqueued)].filter((type) => !served.has(type)).slice(0, maxUnservedTypes)
  const found = await Promise.all(
    unserved.map(async (type) => {
      const filter = { type, state: 'pending' } as const
      const page = await reads.list({ pillar: 'hot', filter, limit: 1, cursor: undefined })
      return page.jobs.length > 0 ? [type] : []
    }),
  )
  return found.flat()
}

export async function metrics(
  { reads, runtime }: Context,
  range: Range,
  of: { readonly queue?: string; readonly type?: string },
): Promise<MetricSeriesView> {
  const query = metricQuery(range, runtime.clock.nowMs(), of)
  return seriesView(query, await reads.metrics(query))
}

export async function queues(context: Context): Promise<readonly QueueView[]> {
  const { reads, runtime } = context
  // Not of the last poll: whoever has just paused one looks whether it is.
  const [rows, workers] = await Promise.all([reads.queues(), reads.workers()])
  const nowMs = runtime.clock.nowMs()
  const served = new Set(workers.filter((worker) => !isSilent(worker, nowMs)).flatMap((worker) => worker.queues))
  const rates = await ratesOf(context, rows)
  return rows.map((row) => queueView(row, { served: served.has(row.name), ratePerSecond: rates.get(row.name) ?? 0 }))
}

async function ratesOf({ reads, runtime }: Context, rows: readonly QueueRow[]): Promise<ReadonlyMap<string, number>> {
  const nowMs = runtime.clock.nowMs()
  // From the beginning of a bucket on, so that none is counted for a part of its time.
  const fromMs = Math.floor((nowMs - minute) / metricBucketMs) * metricBucketMs
  const asked = rows.slice(0, maxRatedQueues).map(async ({ name }) => {
    const { points } = await reads.metrics({ fromMs, toMs: nowMs, stepMs: metricBucketMs, queue: name })
    return [name, (endedCount(points) * 1_000) / (nowMs - fromMs)] as const
  })
  return new Map(await Promise.all(asked))
}

export async function workers({ reads, runtime }: Context): Promise<readonly WorkerView[]> {
  const nowMs = runtime.clock.nowMs()
  return (await reads.workers()).map((row) => workerView(row, nowMs))
}

export async function checklist({ reads }: Context): Promise<readonly ChecklistView[]> {
  const [types, seen] = await Promise.all([reads.jobTypes(), reads.observedEffects(maxObservedCalls)])
  return types.map((row) =>
    checklistView(
      row,
      seen.filter(({ type }) => type === row.type),
    ),
  )
}

/** Names for filters: what is registered, and what was ever enqueued. */
export async function names({
  reads,
  live,
}: Context): Promise<{ types: readonly string[]; queues: readonly string[] }> {
  const [types, { stats, queues: rows }] = await Promise.all([reads.jobTypes(), live.facts()])
  const sorted = (all: readonly string[]): readonly string[] => [...new Set(all)].filter((name) => name !== '').sort()
  return {
    types: sorted([...types.map(({ type }) => type), ...stats.map(({ type }) => type)]),
    queues: sorted([
      ...types.map(({ queue }) => queue),
      ...rows.map(({ name }) => name),
      ...stats.map(({ queue }) => queue),
    ]),
  }
}

export async function audit(
  { reads, config }: Context,
  request: { readonly limit: number; readonly beforeId: number | undefined; readonly subject: string | undefined },
): Promise<{ rows: readonly AuditView[]; nextBefore: number | null }> {
  const rows = await reads.audit(request)
  const last = rows.at(-1)
  const nextBefore = last !== undefined && rows.length === request.limit ? last.id : null
  return { rows: rows.map((row) => auditView(row, config.redaction, (text) => text)), nextBefore }
}

/** Everything that is known of one job, with what is hidden in any part of it hidden in all of them. */
interface Told {
  readonly job: JobRecord
  readonly detail: JobDetail
  readonly effects: readonly LedgerRecord[]
  readonly hide: Hide
}

export async function jobDetail(context: Context, id: string): Promise<JobDetail> {
  return (await tell(context, id)).detail
}

async function tell(context: Context, id: string): Promise<Told> {
  const { reads, config, identity } = context
  const { redaction } = config
  const job = await reads.get(id)
  if (job === undefined) throw jobNotFound()
  const [rows, marker, types, acts, duplicates] = await Promise.all([
    reads.effects(id),
    job.keyHash === null ? undefined : reads.marker(job.keyHash),
    reads.jobTypes(),
    reads.audit({ limit: maxAuditRows, beforeId: undefined, subject: id }),
    duplicatesOf(context, id),
  ])
  const shown = shownJob(job, redaction)
  const effects = rows.map((row) => shownEffect(row, job.type, redaction))
  const hidden = hiddenValues(shown.hidden, ...effects.map((each) => each.hidden))
  const hide = hiderOf(hidden)
  const detail: JobDetail = {
    job: jobOfDetail(job, { ...shown, result: shown.result === null ? null : hide(shown.result) }, hide),
    timeline: timelineOf({ job, effects: rows, duplicates, audit: acts }, hide),
    errors: errorViews(job, hide),
    effects: effects.map((each) => effectView(each, hide)),
    marker:
      marker === undefined
        ? null
        : {
            state: marker.state,
            jobId: marker.jobId,
            generation: marker.generation,
            expiresAtMs: marker.expiresAtMs ?? null,
          },
    duplicates: duplicates.map((each) => jobSummary(each, redaction)),
    audit: acts.map((row) => auditView(row, redaction, hide)),
    payloadSchema: types.find(({ type }) => type === job.type)?.payloadSchema ?? null,
    acts: actsOf(job, identity.role, editObstacle(job, config.jobs)),
  }
  return { job, detail, effects: rows, hide }
}

/** Skipped because of this job, and dead because their payload differed from its. */
async function duplicatesOf({ reads }: Context, id: string): Promise<readonly JobRecord[]> {
  const of = (pillar: 'archive' | 'dlq') =>
    reads.list({ pillar, filter: { duplicateOf: id }, limit: maxDuplicates, cursor: undefined })
  const [archived, dead] = await Promise.all([of('archive'), of('dlq')])
  return [...archived.jobs, ...dead.jobs]
}

export async function reviews(context: Context, type: string | undefined): Promise<readonly ReviewView[]> {
  const found = await listReviews(context.reads, type === undefined ? {} : { type })
  const { redaction } = context.config
  if (redaction.isEmpty) return found.map((review) => reviewView(review, (text) => text))
  return Promise.all(
    found.map(async (review) => {
      const job = await context.reads.get(review.id)
      return reviewView(review, job === undefined ? () => '' : hiderOf(shownJob(job, redaction).hidden))
    }),
  )
}

export async function reviewDetail(context: Context, id: string): Promise<ReviewDetail> {
  const [shown, types] = await Promise.all([showReview(context.reads, id), context.reads.jobTypes()])
  if (shown === undefined) throw jobNotFound()
  const { job, detail, effects, hide } = await tell(context, id)
  const { review } = shown
  const type = types.find((row) => row.type === job.type)
  const decisions = decisionsFor({ review, job, effects, type, role: context.identity.role })
  return { review: reviewView(review, hide), detail, decisions }
}
