/**
 * The one table of what the Deck answers, and who may ask. A request is matched against it to the letter: there is no
 * method override, no other case, no slash too many, so nothing reaches a route but what stands here.
 */
import type { Decision } from '../core/inspector.ts'
import { readName } from '../engine/enqueue/enqueue-options.ts'
import * as bulk from './acts/bulk.ts'
import { checkPayload } from './acts/edit-payload.ts'
import { cancel, purge, resurrect, retryNow } from './acts/job-acts.ts'
import { decideReview } from './acts/review-acts.ts'
import type { Context } from './context.ts'
import { exportStream } from './export.ts'
import { invalid } from './problem.ts'
import * as read from './reading.ts'
import {
  clampedCount,
  filterOfQuery,
  jobFilter,
  noteOf,
  optionalText,
  pillarOf,
  rangeOf,
  type Body,
} from './request.ts'
import { answer, json } from './respond.ts'
import { jobSummary } from './views/job.ts'
import type { JobCount, JobPageView } from './wire-jobs.ts'
import type { QueueView, Role } from './wire.ts'

interface Asked {
  readonly context: Context
  /** What stands in the places of the path, decoded. */
  readonly places: readonly string[]
  readonly query: URLSearchParams
  /** Empty for a GET. */
  readonly body: Body
}

export interface Route {
  readonly method: 'GET' | 'POST'
  /** Segments below `api`; `*` is a place. */
  readonly path: string
  readonly role: Role
  readonly answer: (asked: Asked) => Promise<Response> | Response
}

const defaultPageSize = 50
const maxPageSize = 200
const maxCounted = 10_000
const maxAuditPage = 200
const maxCursorLength = 500

function get(path: string, role: Role, call: (asked: Asked) => Promise<unknown>): Route {
  return { method: 'GET', path, role, answer: async (asked) => json(await call(asked)) }
}

function post(path: string, role: Role, call: (asked: Asked) => Promise<unknown>): Route {
  return { method: 'POST', path, role, answer: async (asked) => json(await call(asked)) }
}

const decide = (decision: Decision): Route =>
  post(`reviews/*/${decision}`, 'operator', ({ context, places: [id = ''], body }) =>
    decideReview(context, id, decision, body),
  )

export const routes: readonly Route[] = [
  get('session', 'viewer', async ({ context }) => read.session(context)),
  get('overview', 'viewer', ({ context, query }) => read.overview(context, rangeOf(query.get('range')))),
  get('metrics', 'viewer', metrics),
  get('queues', 'viewer', async ({ context }) => ({ queues: await read.queues(context) })),
  post('queues/*', 'operator', changeQueue),
  get('jobs', 'viewer', listJobs),
  get('jobs/count', 'viewer', countJobs),
  get('jobs/*', 'viewer', ({ context, places: [id = ''] }) => read.jobDetail(context, id)),
  post('jobs/*/cancel', 'operator', ({ context, places: [id = ''], body }) => cancel(context, id, body)),
  post('jobs/*/retry-now', 'operator', ({ context, places: [id = ''], body }) => retryNow(context, id, body)),
  post('jobs/*/resurrect', 'operator', ({ context, places: [id = ''], body }) => resurrect(context, id, body)),
  post('jobs/*/check-payload', 'admin', ({ context, places: [id = ''], body }) => checkPayload(context, id, body)),
  post('jobs/*/purge', 'admin', ({ context, places: [id = ''], body }) => purge(context, id, body)),
  post('bulk/preview', 'operator', ({ context, body }) => bulk.preview(context, body)),
  post('bulk/run', 'operator', ({ context, body }) => bulk.run(context, body)),
  get('reviews', 'viewer', async ({ context, query }) => ({
    reviews: await read.reviews(context, filterOfQuery(query).type),
  })),
  get('reviews/*', 'viewer', ({ context, places: [id = ''] }) => read.reviewDetail(context, id)),
  decide('adopt'),
  decide('retry'),
  decide('abandon'),
  decide('compensate'),
  get('types', 'viewer', ({ context }) => read.names(context)),
  get('checklist', 'viewer', async ({ context }) => ({ rows: await read.checklist(context) })),
  get('workers', 'viewer', async ({ context }) => ({ workers: await read.workers(context) })),
  get('audit', 'viewer', audit),
  { method: 'GET', path: 'export', role: 'viewer', answer: exportJobs },
  { method: 'GET', path: 'events', role: 'viewer', answer: ({ context }) => events(context) },
]

/** The route of a path below `api/`, its places, and which methods the path knows. */
export function matchRoute(
  method: string,
  segments: readonly string[],
): { readonly route: Route | undefined; readonly places: readonly string[]; readonly allowed: readonly string[] } {
  const found = routes.filter(({ path }) => placesOf(path, segments) !== undefined)
  // A path that is told by a word comes before one that has a place there.
  const exact = found.filter(({ path }) => path === segments.join('/'))
  const candidates = exact.length > 0 ? exact : found
  const route = candidates.find((each) => each.method === (method === 'HEAD' ? 'GET' : method))
  const places = route === undefined ? [] : (placesOf(route.path, segments) ?? [])
  const allowed = [...new Set(candidates.map((each) => each.method))]
  return { route, places, allowed: allowed.includes('GET') ? [...allowed, 'HEAD', 'OPTIONS'] : [...allowed, 'OPTIONS'] }
}

function placesOf(path: string, segments: readonly string[]): readonly string[] | undefined {
  const steps = path.split('/')
  if (steps.length !== segments.length) return undefined
  const places: string[] = []
  for (const [index, step] of steps.entries()) {
    const segment = segments[index] ?? ''
    if (step === '*' && segment !== '') places.push(segment)
    else if (step !== segment) return undefined
  }
  return places
}

function metrics({ context, query }: Asked): Promise<unknown> {
  const { queue, type } = filterOfQuery(query)
  const of = { ...(queue === undefined ? {} : { queue }), ...(type === undefined ? {} : { type }) }
  return read.metrics(context, rangeOf(query.get('range')), of)
}

function listOf(query: URLSearchParams) {
  const pillar = pillarOf(query.get('pillar') ?? undefined)
  return { pillar, filter: jobFilter(pillar, filterOfQuery(query)) }
}

async function listJobs({ context, query }: Asked): Promise<JobPageView> {
  const cursor = query.get('cursor') ?? undefined
  if ((cursor?.length ?? 0) > maxCursorLength) throw invalid('This is no position in this list.')
  const limit = clampedCount(query.get('limit'), defaultPageSize, maxPageSize)
  const page = await context.reads.list({ ...listOf(query), limit, cursor: cursor === '' ? undefined : cursor })
  return {
    jobs: page.jobs.map((job) => jobSummary(job, context.config.redaction)),
    nextCursor: page.nextCursor ?? null,
  }
}

function countJobs({ context, query }: Asked): Promise<JobCount> {
  return context.reads.count({ ...listOf(query), limit: maxCounted })
}

async function changeQueue({ context, places: [name = ''], body }: Asked): Promise<{ queue: QueueView | null }> {
  const queue = readName(name, 'queue')
  const { paused, maxConcurrency } = body
  const by = context.by(noteOf(body))
  if (paused === undefined && maxConcurrency === undefined)
    throw invalid('Say what to change: paused or maxConcurrency.')
  if (paused !== undefined && typeof paused !== 'boolean') throw invalid('paused must be true or false.')
  if (maxConcurrency !== undefined && maxConcurrency !== null && typeof maxConcurrency !== 'number') {
    throw invalid('maxConcurrency must be a whole number, or null for no limit.')
  }
  // The limit first: it is the one that can be refused.
  if (maxConcurrency !== undefined) await context.chokaq.queues.limit(queue, maxConcurrency, by)
  if (paused === true) await context.chokaq.queues.pause(queue, by)
  if (paused === false) await context.chokaq.queues.resume(queue, by)
  const found = (await read.queues(context)).find((each) => each.name === queue)
  return { queue: found ?? null }
}

async function audit({ context, query }: Asked): Promise<unknown> {
  const limit = clampedCount(query.get('limit'), defaultPageSize, maxAuditPage)
  const before = query.get('before') ?? ''
  if (!/^\d{0,15}$/.test(before)) throw invalid('before must be the id of an entry.')
  const subject = optionalText({ subject: query.get('subject') }, 'subject')
  return read.audit(context, {
    limit,
    beforeId: before === '' ? undefined : Number(before),
    subject: subject === '' ? undefined : subject,
  })
}

function exportJobs({ context, query }: Asked): Response {
  const { pillar, filter } = listOf(query)
  const format = query.get('format') ?? 'csv'
  switch (format) {
    case 'csv':
    case 'jsonl': {
      const type = format === 'csv' ? 'text/csv; charset=utf-8' : 'application/x-ndjson'
      const disposition = `attachment; filename="chokaq-${pillar}.${format}"`
      const headers = { 'content-type': type, 'content-disposition': disposition }
      return answer(200, exportStream(context, pillar, filter, format), headers)
    }
    default:
      throw invalid('format must be csv or jsonl.')
  }
}

function events({ live }: Context): Response {
  // Proxies like to gather what they pass on; this header is how nginx is told not to.
  return answer(200, live.open(), { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' })
}
