/** Answers like the Deck's server, from invented rows. Acts change the rows, so that pages can be walked. */
import { type Range, ranges, type Session } from '../../src/deck/wire.ts'
import type { BulkAct, JobFilterView, JobSummary, PillarView } from '../../src/deck/wire-jobs.ts'
import { audit, checklist, findJob, jobs, queueNames, queues, startedAtMs, typeNames, workers } from './mock-data.ts'
import { detailOf, reviewDetailOf, reviewOf } from './mock-detail.ts'
import { liveState, metricsOf, overviewOf } from './mock-metrics.ts'

const session: Session = {
  actor: 'ann',
  role: 'admin',
  version: '0.1.0',
  source: 'shop.db (invented rows)',
  nowMs: startedAtMs,
  redactedPaths: ['card.number'],
}

type Body = Readonly<Record<string, unknown>>
type Answer = { readonly status: number; readonly body: unknown }

const ok = (body: unknown): Answer => ({ status: 200, body })
const problem = (status: number, code: string, title: string): Answer => ({ status, body: { status, code, title } })
const missing = problem(404, 'not-found', 'Nothing has this id (any more).')

export function answerGet(path: string, query: URLSearchParams): Answer {
  const range = ranges.find((one) => one === query.get('range')) ?? ('1h' satisfies Range)
  const [place = '', id] = path.split('/')
  switch (place) {
    case 'session':
      return ok({ ...session, nowMs: Date.now() })
    case 'overview':
      return ok(overviewOf(range))
    case 'metrics':
      return ok(metricsOf(range))
    case 'queues':
      return ok({ queues })
    case 'workers':
      return ok({
        workers: workers.map((one) => (one.state === 'alive' ? { ...one, beatAtMs: Date.now() - 900 } : one)),
      })
    case 'types':
      return ok({ types: typeNames, queues: queueNames })
    case 'checklist':
      return ok({ rows: checklist })
    case 'audit':
      return ok({ rows: audit.filter(({ subject }) => subject.includes(query.get('subject') ?? '')), nextBefore: null })
    case 'jobs':
      return id === undefined ? ok(pageOf(query)) : id === 'count' ? ok(countOf(matching(query))) : one(id, detailOf)
    case 'reviews':
      return id === undefined ? ok({ reviews: waiting(query.get('type')).map(reviewOf) }) : one(id, reviewDetailOf)
    default:
      return missing
  }
}

function one(id: string, make: (job: JobSummary) => unknown): Answer {
  const job = findJob(decodeURIComponent(id))
  return job === undefined || (make === reviewDetailOf && !job.inDoubt) ? missing : ok(make(job))
}

function waiting(type: string | null): readonly JobSummary[] {
  return jobs.dlq.filter((job) => job.inDoubt && (type === null || type === job.type))
}

function matching(query: URLSearchParams): readonly JobSummary[] {
  return filtered((query.get('pillar') ?? 'hot') as PillarView, Object.fromEntries(query))
}

function filtered(pillar: PillarView, filter: JobFilterView): readonly JobSummary[] {
  const { type, queue, key, tag, state, reason, review, from, before } = filter
  return jobs[pillar].filter(
    (job) =>
      (type === undefined || job.type === type) &&
      (queue === undefined || job.queue === queue) &&
      (key === undefined || job.key?.startsWith(key) === true) &&
      (tag === undefined || job.tags.includes(tag)) &&
      (state === undefined || job.state === state) &&
      (reason === undefined || job.reason === reason) &&
      (review !== '1' || job.inDoubt) &&
      (from === undefined || job.createdAtMs >= Number(from)) &&
      (before === undefined || job.createdAtMs < Number(before)),
  )
}

function pageOf(query: URLSearchParams) {
  const from = Number(query.get('cursor') ?? 0)
  const to = from + Number(query.get('limit') ?? 50)
  const found = matching(query)
  return { jobs: found.slice(from, to), nextCursor: to < found.length ? String(to) : null }
}

function countOf(found: readonly JobSummary[]) {
  return { count: Math.min(found.length, 10_000), isExact: found.length <= 10_000 }
}

export function answerPost(path: string, body: Body): Answer {
  const [place = '', id = '', act = ''] = path.split('/')
  switch (place) {
    case 'queues':
      return changeQueue(decodeURIComponent(id), body)
    case 'jobs':
      return actOn(decodeURIComponent(id), act, body)
    case 'reviews':
      return decide(decodeURIComponent(id), act, body)
    case 'bulk':
      return id === 'preview' ? ok(previewOf(body)) : ok(runBulk(body))
    case 'login':
      return body['token'] === 'mock' ? ok({}) : problem(401, 'login-failed', 'This token is not known.')
    default:
      return missing
  }
}

function record(act: string, subject: string, note: unknown): void {
  const id = (audit[0]?.id ?? 0) + 1
  audit.unshift({
    id,
    atMs: Date.now(),
    actor: session.actor,
    act,
    subject,
    note: typeof note === 'string' ? note : '',
    detail: '{}',
  })
}

function changeQueue(name: string, body: Body): Answer {
  const at = queues.findIndex((queue) => queue.name === name)
  const before = queues[at]
  if (before === undefined) return missing
  const { paused = before.paused, maxConcurrency = before.maxConcurrency } = body
  queues[at] = {
    ...before,
    paused: paused === true,
    maxConcurrency: typeof maxConcurrency === 'number' ? maxConcurrency : null,
  }
  record(
    paused === before.paused ? 'queue.limit' : paused === true ? 'queue.pause' : 'queue.resume',
    name,
    body['note'],
  )
  return ok({ queue: queues[at] })
}

function leave(job: JobSummary): void {
  jobs[job.pillar] = jobs[job.pillar].filter(({ id }) => id !== job.id)
}

function actOn(id: string, act: string, body: Body): Answer {
  const job = findJob(id)
  if (job === undefined) return missing
  if (act === 'check-payload') return ok(checkPayload(typeof body['payload'] === 'string' ? body['payload'] : ''))
  record(`job.${act}`, id, body['note'])
  const done = apply(job, act)
  return ok({ done, title: done ? doneWords(act) : 'It is in doubt: decide its review first.' })
}

function apply(job: JobSummary, act: string): boolean {
  if (job.inDoubt) return false
  leave(job)
  if (act === 'cancel')
    jobs.archive.unshift({ ...job, pillar: 'archive', state: 'cancelled', finishedAtMs: Date.now() })
  if (act === 'resurrect' || act === 'retry-now') {
    jobs.hot.unshift({ ...job, pillar: 'hot', state: 'pending', reason: null, finishedAtMs: null, runAtMs: Date.now() })
  }
  return true
}

function doneWords(act: string): string {
  if (act === 'cancel') return 'Cancelled.'
  return act === 'purge' ? 'Deleted for good.' : 'It is pending again, generation 1.'
}

function checkPayload(text: string) {
  const value = JSON.parse(text) as { readonly amountCents?: unknown }
  const isFine = typeof value.amountCents === 'number' && value.amountCents > 0
  return { ok: isFine, errors: isFine ? [] : [{ path: 'amountCents', message: 'Expected a positive integer.' }] }
}

function decide(id: string, act: string, body: Body): Answer {
  const job = findJob(id)
  if (job === undefined) return missing
  if (!job.inDoubt || body['note'] === 'conflict') return ok({ outcome: 'already-resolved', by: 'ben', as: 'adopt' })
  record(`review.${act}`, id, body['note'])
  leave(job)
  jobs.archive.unshift({
    ...job,
    pillar: 'archive',
    state: 'completed',
    inDoubt: false,
    reason: null,
    finishedAtMs: Date.now(),
  })
  return ok({ outcome: 'resolved' })
}

function targetOf(body: Body): { readonly act: BulkAct; readonly found: readonly JobSummary[] } {
  const act = body['act'] as BulkAct
  const pillar = act === 'cancel' || act === 'retry-now' ? 'hot' : 'dlq'
  return { act, found: filtered(pillar, body['filter'] as JobFilterView) }
}

function previewOf(body: Body) {
  const { act, found } = targetOf(body)
  const isTyped = act === 'purge' || act === 'cancel'
  return { ...countOf(found), sample: found.slice(0, 10), phrase: isTyped ? `${act} ${found.length}` : null }
}

function runBulk(body: Body) {
  const { act, found } = targetOf(body)
  const skipped = Number(body['cursor'] ?? 0)
  const part = found.slice(skipped, skipped + Number(body['limit']))
  const doneCount = part.filter((job) => apply(job, act)).length
  const refusedCount = part.length - doneCount
  const refused = refusedCount === 0 ? [] : [{ why: 'It is in doubt: decide its review first.', count: refusedCount }]
  const isEnd = skipped + part.length >= found.length
  return { doneCount, refused, nextCursor: isEnd ? null : String(skipped + refusedCount) }
}

export function exportText(query: URLSearchParams): string {
  const rows = matching(query).slice(0, 10_000)
  if (query.get('format') === 'jsonl') return rows.map((job) => JSON.stringify(job)).join('\n')
  return ['id,state,type,queue', ...rows.map(({ id, state, type, queue }) => [id, state, type, queue].join(','))].join(
    '\n',
  )
}

export function liveEvent(): string {
  return `data: ${JSON.stringify({ kind: 'state', state: liveState() })}\n\n`
}
