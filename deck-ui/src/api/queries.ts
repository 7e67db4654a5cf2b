/** What the pages read, as TanStack Query options. How often a thing is read again stands beside it. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query'
import type {
  AuditView,
  ChecklistView,
  MetricSeriesView,
  Overview,
  QueueView,
  Range,
  Session,
  WorkerView,
} from '../../../src/deck/wire.ts'
import type {
  BulkPreview,
  BulkTarget,
  JobCount,
  JobDetail,
  JobFilterView,
  JobPageView,
  PillarView,
  ReviewDetail,
  ReviewView,
} from '../../../src/deck/wire-jobs.ts'
import { getJson, postJson } from './request.ts'

const pageSize = 50
const auditPageSize = 100

export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: ({ signal }) => getJson<Session>('api/session', {}, signal),
  staleTime: Infinity,
})

export const overviewQuery = (range: Range) =>
  queryOptions({
    queryKey: ['overview', range],
    queryFn: ({ signal }) => getJson<Overview>('api/overview', { range }, signal),
    refetchInterval: 10_000,
    placeholderData: keepPreviousData,
  })

export const metricsQuery = (range: Range, queue: string) =>
  queryOptions({
    queryKey: ['metrics', range, queue],
    queryFn: ({ signal }) => getJson<MetricSeriesView>('api/metrics', { range, queue }, signal),
    refetchInterval: 10_000,
    placeholderData: keepPreviousData,
  })

export const queuesQuery = queryOptions({
  queryKey: ['queues'],
  queryFn: ({ signal }) => getJson<{ readonly queues: readonly QueueView[] }>('api/queues', {}, signal),
  refetchInterval: 3_000,
})

export const workersQuery = queryOptions({
  queryKey: ['workers'],
  queryFn: ({ signal }) => getJson<{ readonly workers: readonly WorkerView[] }>('api/workers', {}, signal),
  refetchInterval: 3_000,
})

export const checklistQuery = queryOptions({
  queryKey: ['checklist'],
  queryFn: ({ signal }) => getJson<{ readonly rows: readonly ChecklistView[] }>('api/checklist', {}, signal),
})

export const typesQuery = queryOptions({
  queryKey: ['types'],
  queryFn: ({ signal }) =>
    getJson<{ readonly types: readonly string[]; readonly queues: readonly string[] }>('api/types', {}, signal),
  staleTime: 60_000,
})

export const jobsQuery = (pillar: PillarView, filter: JobFilterView) =>
  infiniteQueryOptions({
    queryKey: ['jobs', pillar, filter],
    queryFn: ({ pageParam, signal }) =>
      getJson<JobPageView>('api/jobs', { pillar, ...filter, limit: pageSize, cursor: pageParam }, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor ?? undefined,
  })

export const jobCountQuery = (pillar: PillarView, filter: JobFilterView) =>
  queryOptions({
    queryKey: ['job-count', pillar, filter],
    queryFn: ({ signal }) => getJson<JobCount>('api/jobs/count', { pillar, ...filter }, signal),
  })

export const jobQuery = (id: string) =>
  queryOptions({
    queryKey: ['job', id],
    queryFn: ({ signal }) => getJson<JobDetail>(`api/jobs/${encodeURIComponent(id)}`, {}, signal),
    // An active job moves by the second, a finished one does not move by itself.
    refetchInterval: ({ state }) => (state.data?.job.pillar === 'hot' ? 2_000 : false),
  })

export const bulkPreviewQuery = (target: BulkTarget) =>
  queryOptions({
    queryKey: ['bulk-preview', target],
    queryFn: () => postJson<BulkPreview>('api/bulk/preview', target),
    gcTime: 0,
  })

export const reviewsQuery = (type: string) =>
  queryOptions({
    queryKey: ['reviews', type],
    queryFn: ({ signal }) => getJson<{ readonly reviews: readonly ReviewView[] }>('api/reviews', { type }, signal),
    refetchInterval: 5_000,
    placeholderData: keepPreviousData,
  })

export const reviewQuery = (id: string) =>
  queryOptions({
    queryKey: ['review', id],
    queryFn: ({ signal }) => getJson<ReviewDetail>(`api/reviews/${encodeURIComponent(id)}`, {}, signal),
  })

export interface AuditPage {
  readonly rows: readonly AuditView[]
  readonly nextBefore: number | null
}

export const auditQuery = (subject: string) =>
  infiniteQueryOptions({
    queryKey: ['audit', subject],
    queryFn: ({ pageParam, signal }) =>
      getJson<AuditPage>('api/audit', { limit: auditPageSize, before: pageParam, subject }, signal),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: (page) => page.nextBefore ?? undefined,
  })
