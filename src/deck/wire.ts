/**
 * What the Deck's server and its page say to each other: types only, so that both sides compile against one text. Every
 * address is below the Deck's base path, which the page gets from its `<base href>`.
 *
 *   POST api/login                        { token: string } -> { ok: true }, sets a cookie; only where there are tokens
 *   POST api/logout                       {} -> { ok: true }, takes it back
 *   GET  api/session                      Session
 *   GET  api/overview?range=RANGE         Overview
 *   GET  api/metrics?range=RANGE&queue=&type=   MetricSeriesView
 *   GET  api/queues                       { queues: QueueView[] }
 *   POST api/queues/NAME                  QueueChangeRequest -> { queue: QueueView }
 *   GET  api/jobs?pillar=…&<JobFilterView>&limit=&cursor=    JobPageView
 *   GET  api/jobs/count?pillar=…&<JobFilterView>             JobCount
 *   GET  api/jobs/ID                      JobDetail
 *   POST api/jobs/ID/cancel | retry-now | purge              ActRequest -> ActAnswer
 *   POST api/jobs/ID/resurrect            ResurrectActRequest -> ActAnswer
 *   POST api/jobs/ID/check-payload        { payload: string } -> PayloadCheck
 *   POST api/bulk/preview                 BulkTarget -> BulkPreview
 *   POST api/bulk/run                     BulkRunRequest -> BulkAnswer
 *   GET  api/reviews?type=                { reviews: ReviewView[] }
 *   GET  api/reviews/ID                   ReviewDetail
 *   POST api/reviews/ID/adopt | retry | abandon | compensate ReviewActRequest -> ReviewAnswer
 *   GET  api/types                        { types: string[]; queues: string[] }   (for filters)
 *   GET  api/checklist                    { rows: ChecklistView[] }
 *   GET  api/workers                      { workers: WorkerView[] }
 *   GET  api/audit?limit=&before=&subject=   { rows: AuditView[]; nextBefore: number | null }
 *   GET  api/export?pillar=…&<JobFilterView>&format=csv|jsonl   a file, at most 10,000 rows
 *   GET  api/events                       text/event-stream of LiveEvent
 *
 * Without a session every api address answers 401: `login-required` where a token may be sent to api/login, and where the
 * host's own sign-in is meant (the Deck has no form for that). 403 `deny-by-default` is for an operator who set nothing up.
 *
 * Every error is `application/problem+json`: ProblemView. A POST needs `content-type: application/json` and comes from the
 * Deck's own origin.
 */
export const ranges = ['15m', '1h', '6h', '24h', '7d'] as const
export type Range = (typeof ranges)[number]

/** viewer reads; operator also cancels, retries, resurrects, reviews, pauses; admin also edits payloads and deletes. */
export const roles = ['viewer', 'operator', 'admin'] as const
export type Role = (typeof roles)[number]

export interface ProblemView {
  readonly status: number
  /** Stable, kebab-case. */
  readonly code: string
  /** One sentence for the person at the screen: what happened and what to do. */
  readonly title: string
}

export interface Session {
  readonly actor: string
  readonly role: Role
  readonly version: string
  /** What the Deck is connected to, without secrets: the file's name, or database and schema. */
  readonly source: string
  readonly nowMs: number
  /** Paths of payloads that are shown as `[redacted]`, such as `card.number`. */
  readonly redactedPaths: readonly string[]
}

export interface Series {
  readonly label: string
  /** One value per point of time; null where nothing is known. */
  readonly values: readonly (number | null)[]
}

export interface MetricSeriesView {
  readonly stepMs: number
  /** Start of each step. Every step of the range is there, empty ones too. */
  readonly times: readonly number[]
  /** Jobs per second by ending: completed, failed attempts, dead, skipped. */
  readonly throughput: readonly Series[]
  /** p50, p95, p99 in milliseconds, estimated from the histogram. */
  readonly lag: readonly Series[]
  readonly duration: readonly Series[]
  /** Count per step for each of the seven outcomes of idempotency claims. */
  readonly claims: readonly Series[]
}

export interface Overview extends MetricSeriesView {
  readonly live: LiveState
  /** Sums over the range. */
  readonly sums: {
    readonly completed: number
    readonly failed: number
    readonly dead: number
    readonly skipped: number
    readonly retried: number
    readonly rescued: number
    /** Answered at enqueue: their key was held or finished, and no job was stored. */
    readonly deduplicated: number
  }
  /** What a person should look at first, worst first; empty where all is well. */
  readonly attention: readonly AttentionView[]
}

export interface AttentionView {
  readonly level: 'critical' | 'warning' | 'notice'
  readonly text: string
  /** Where to look, relative to the base path, such as `review` or `queues/mail`. */
  readonly href: string
}

/** What changes by the second. The same for every viewer; pushed over api/events. */
export interface LiveState {
  readonly atMs: number
  readonly scheduledCount: number
  readonly pendingCount: number
  readonly fetchedCount: number
  readonly processingCount: number
  /** Of each queue up to 10,000. */
  readonly deadCount: number
  /** Up to 1,000. */
  readonly reviewCount: number
  readonly oldestLagMs: number | null
  readonly workerCount: number
  readonly silentWorkerCount: number
  readonly pausedQueueCount: number
  /** Totals since the database was made. */
  readonly totals: { readonly completed: number; readonly dead: number; readonly skipped: number }
  /** Totals of the seven outcomes of claims. */
  readonly claims: Readonly<Record<string, number>>
  readonly health: 'healthy' | 'degraded' | 'unhealthy'
  readonly healthReasons: readonly string[]
}

export type LiveEvent =
  | { readonly kind: 'state'; readonly state: LiveState }
  /** The storage does not answer; the page says so and keeps what it has. */
  | { readonly kind: 'trouble'; readonly title: string }

export interface QueueView {
  readonly name: string
  readonly paused: boolean
  readonly maxConcurrency: number | null
  readonly scheduledCount: number
  readonly pendingCount: number
  readonly fetchedCount: number
  readonly processingCount: number
  /** Up to 10,000. */
  readonly deadCount: number
  readonly lagMs: number | null
  /** Jobs per second that ended in the last minute. */
  readonly ratePerSecond: number
  /** A live worker serves it. */
  readonly served: boolean
}

export interface QueueChangeRequest {
  readonly paused?: boolean
  readonly maxConcurrency?: number | null
  readonly note: string
}

export interface ChecklistView {
  readonly type: string
  readonly queue: string
  readonly key: string
  readonly sideEffects: string
  readonly enforcedBy: string
  readonly duplicateWindowMs: number | null
  readonly whenInterrupted: string
  /** The lower of what is declared and what was observed. */
  readonly level: string
  readonly declaredLevel: string
  /** What the newest calls of its effects came to; null where none was seen. */
  readonly observed: string | null
  readonly markerLifeMs: number | null
  readonly allowRaw: boolean
  /** Names of the declared effects with their provider. */
  readonly effects: readonly { readonly name: string; readonly provider: string }[]
}

export interface WorkerView {
  readonly id: string
  readonly name: string
  readonly host: string
  readonly pid: number
  readonly queues: readonly string[]
  readonly types: readonly string[]
  readonly concurrency: number
  readonly runningCount: number
  readonly bufferedCount: number
  readonly startedAtMs: number
  readonly beatAtMs: number
  readonly state: 'alive' | 'silent'
}

export interface AuditView {
  readonly id: number
  readonly atMs: number
  readonly actor: string
  readonly act: string
  readonly subject: string
  readonly note: string
  /** JSON text, redacted. */
  readonly detail: string
}
