/** Invented rows for developing the Deck's pages without a database: the same on every start, moved by the clock. */
import type { AuditView, ChecklistView, QueueView, WorkerView } from '../../src/deck/wire.ts'
import type { JobSummary, PillarView } from '../../src/deck/wire-jobs.ts'

export const startedAtMs = Date.now()
const minute = 60_000
const hour = 60 * minute

/** The same sequence for the same seed. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 4_294_967_296
  }
}

const types = [
  { type: 'payment.capture.v1', queue: 'payments', key: 'pay' },
  { type: 'payment.refund.v2', queue: 'payments', key: 'ref' },
  { type: 'mail.receipt.v1', queue: 'mail', key: 'rcp' },
  { type: 'image.resize.v1', queue: 'images', key: null },
  { type: 'webhook.deliver.v3', queue: 'webhooks', key: 'evt' },
  { type: 'report.monthly.v1', queue: 'reports', key: 'rep' },
] as const

export const typeNames = types.map(({ type }) => type)
export const queueNames = ['payments', 'mail', 'images', 'webhooks', 'reports', 'imports'] as const

const failures = [
  'StripeCardError: Your card was declined.',
  'FetchError: connect ECONNREFUSED 10.0.4.17:443',
  'TypeError: fetch failed (cause: ECONNRESET)',
  "ZodError: amountCents: Expected number, received string '4900'",
  'TimeoutError: The handler ran longer than 15 min',
]
const reasons = ['MaxRetriesExceeded', 'FatalError', 'Timeout', 'Rejected', 'Interrupted', 'RetryLifetimeExpired']

function idOf(atMs: number, random: () => number): string {
  const time = Math.floor(atMs).toString(16).padStart(12, '0')
  const digits = Array.from({ length: 18 }, () => Math.floor(random() * 16).toString(16)).join('')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${digits.slice(0, 3)}-a${digits.slice(3, 6)}-${digits.slice(6, 18)}`
}

function pick<T>(from: readonly T[], random: () => number): T {
  return from[Math.floor(random() * from.length)] as T
}

function baseJob(pillar: PillarView, at: number, random: () => number): JobSummary {
  const { type, queue, key } = pick(types, random)
  const createdAtMs = startedAtMs - (pillar === 'dlq' ? hour : 0) - Math.floor(at * 2_400 + random() * 2_000 + 1_000)
  const isFinished = pillar !== 'hot'
  return {
    id: idOf(createdAtMs, random),
    pillar,
    state: 'pending',
    type,
    queue,
    key: key === null ? null : `${key}_${Math.floor(random() * 9e7 + 1e7).toString(36)}`,
    tags: random() < 0.2 ? ['tenant:acme', 'import-7'] : [],
    priority: random() < 0.1 ? 10 : 0,
    attempt: 1,
    failureCount: 0,
    crashCount: 0,
    reason: null,
    inDoubt: false,
    message: null,
    createdAtMs,
    runAtMs: createdAtMs,
    startedAtMs: isFinished ? createdAtMs + 400 : null,
    finishedAtMs: isFinished ? createdAtMs + 900 : null,
  }
}

function hotJob(at: number, random: () => number): JobSummary {
  const job = baseJob('hot', at / 8, random)
  const state = pick(['scheduled', 'pending', 'pending', 'pending', 'fetched', 'processing'] as const, random)
  const failed = random() < 0.25
  return {
    ...job,
    state,
    runAtMs: state === 'scheduled' ? startedAtMs + Math.floor(random() * 40 * minute) : job.createdAtMs,
    startedAtMs: state === 'processing' ? startedAtMs - Math.floor(random() * 40_000) : null,
    attempt: failed ? 3 : state === 'processing' ? 1 : 0,
    failureCount: failed ? 2 : 0,
    crashCount: random() < 0.06 ? 1 : 0,
    message: failed ? pick(failures, random) : null,
  }
}

function deadJob(at: number, random: () => number): JobSummary {
  const job = baseJob('dlq', at * 9, random)
  return {
    ...job,
    state: 'dead',
    reason: pick(reasons, random),
    message: pick(failures, random),
    attempt: 22,
    failureCount: 22,
    crashCount: random() < 0.2 ? 3 : 0,
    finishedAtMs: job.createdAtMs + 58 * minute,
  }
}

function doneJob(at: number, random: () => number): JobSummary {
  const job = baseJob('archive', at, random)
  const state = pick(['completed', 'completed', 'completed', 'completed', 'completed', 'skipped', 'cancelled'], random)
  return { ...job, state, attempt: random() < 0.1 ? 2 : 1 }
}

const doubtful = [
  { at: 2, reason: 'InDoubt', message: 'charge has an intent and no outcome', key: 'pay_8812' },
  { at: 0, reason: 'Interrupted', message: 'its worker died while the handler ran', key: 'rep_2026_11' },
  { at: 1, reason: 'InDoubt', message: 'FetchError: read ECONNRESET', key: 'ref_4410' },
] as const

function doubtJob(index: number, random: () => number): JobSummary {
  const { reason, message, key } = doubtful[index] ?? doubtful[0]
  const { type, queue } = types[index === 1 ? 5 : index === 2 ? 1 : 0] ?? types[0]
  const createdAtMs = startedAtMs - (14 + index * 37) * minute
  const times = {
    createdAtMs,
    runAtMs: createdAtMs,
    startedAtMs: createdAtMs + 65_000,
    finishedAtMs: createdAtMs + 95_000,
  }
  const counts = { attempt: 2, failureCount: index === 1 ? 0 : 1, crashCount: 1 }
  const id = idOf(createdAtMs, random)
  const base = baseJob('dlq', 0, random)
  return { ...base, ...times, ...counts, id, type, queue, key, state: 'dead', reason, message, inDoubt: true }
}

function rows(count: number, seed: number, make: (at: number, random: () => number) => JobSummary): JobSummary[] {
  const random = seeded(seed)
  return Array.from({ length: count }, (_, at) => make(at, random))
}

export const jobs: Record<PillarView, JobSummary[]> = {
  hot: rows(412, 11, hotJob),
  archive: rows(10_400, 12, doneJob),
  dlq: [...rows(3, 13, doubtJob), ...rows(640, 14, deadJob)],
}

export function findJob(id: string): JobSummary | undefined {
  return [...jobs.dlq, ...jobs.hot, ...jobs.archive].find((job) => job.id === id)
}

export const queues: QueueView[] = queueNames.map((name, at) => ({
  name,
  paused: name === 'webhooks',
  maxConcurrency: name === 'payments' ? 20 : name === 'reports' ? 2 : null,
  scheduledCount: [12, 40, 3, 118, 1, 0][at] ?? 0,
  pendingCount: [4, 61, 9, 1_204, 0, 17][at] ?? 0,
  fetchedCount: [2, 8, 4, 0, 0, 0][at] ?? 0,
  processingCount: [14, 12, 7, 0, 1, 0][at] ?? 0,
  deadCount: [9, 41, 12, 562, 19, 0][at] ?? 0,
  lagMs: [180, 940, 60, 1_264_000, null, 402_000][at] ?? null,
  ratePerSecond: [11.2, 48.1, 7.4, 0, 0.02, 0][at] ?? 0,
  served: name !== 'imports',
}))

export const workers: WorkerView[] = ['worker-eu-1', 'worker-eu-2', 'worker-us-1'].map((name, at) => ({
  id: idOf(startedAtMs - (at + 2) * hour, seeded(at + 40)),
  name,
  host: `node-${at + 4}.internal`,
  pid: 4_100 + at * 17,
  queues: at === 2 ? ['images', 'reports'] : ['payments', 'mail', 'webhooks'],
  types: at === 2 ? ['image.resize.v1', 'report.monthly.v1'] : typeNames.slice(0, 3),
  concurrency: 20,
  runningCount: [18, 14, 6][at] ?? 0,
  bufferedCount: [8, 3, 1][at] ?? 0,
  startedAtMs: startedAtMs - (at + 2) * hour,
  beatAtMs: startedAtMs - (at === 1 ? 42_000 : 1_200),
  state: at === 1 ? 'silent' : 'alive',
}))

const answers = [
  [
    'payment.capture.v1',
    'from the payload',
    'effects',
    'the provider, by an idempotency key',
    60,
    'resume',
    'effectively once (provider, 24 h)',
  ],
  [
    'payment.refund.v2',
    'from the payload',
    'effects',
    'nobody: no key and no reconcile',
    60,
    'review',
    'at most once + review',
  ],
  ['mail.receipt.v1', 'from the payload', 'read-before-write', 'a read before the write', 7, 'resume', 'at least once'],
  ['image.resize.v1', 'none', 'none', 'nothing to enforce', null, 'resume', 'at least once'],
  [
    'webhook.deliver.v3',
    'from the payload',
    'same-transaction',
    'the transaction of the job',
    14,
    'resume',
    'exactly once (same database)',
  ],
  ['report.monthly.v1', 'from the payload', 'unguarded', 'nobody', 30, 'review', 'at most once + review'],
] as const

export const checklist: ChecklistView[] = answers.map(
  ([type, key, sideEffects, enforcedBy, days, whenInterrupted, level]) => ({
    type,
    queue: types.find((one) => one.type === type)?.queue ?? 'default',
    key,
    sideEffects,
    enforcedBy,
    duplicateWindowMs: days === null ? null : days * 24 * hour,
    whenInterrupted,
    level,
    declaredLevel: level,
    observed: sideEffects === 'effects' ? 'charge: 1204 done, 3 terminal, all with a key' : null,
    markerLifeMs: days === null ? null : (days + 1) * 24 * hour,
    allowRaw: type === 'image.resize.v1',
    effects:
      sideEffects === 'effects' ? [{ name: type.includes('refund') ? 'refund' : 'charge', provider: 'stripe' }] : [],
  }),
)

export const audit: AuditView[] = [
  {
    act: 'queue.pause',
    subject: 'webhooks',
    actor: 'ann',
    note: 'partner asked for a stop',
    detail: '{"paused":true}',
    ago: 21,
  },
  {
    act: 'review.adopt',
    subject: 'rep_2026_10',
    actor: 'ben',
    note: 'found ch_3Q8 in the dashboard of the provider',
    detail: '{"decision":"adopt","revision":1}',
    ago: 96,
  },
  {
    act: 'dlq.resurrect',
    subject: jobs.dlq[8]?.id ?? '',
    actor: 'ann',
    note: 'provider is back',
    detail: '{"mode":"continue"}',
    ago: 180,
  },
  { act: 'dlq.purge', subject: '118 jobs', actor: 'admin', note: 'test data', detail: '{"count":118}', ago: 2_900 },
].map(({ ago, ...row }, at) => ({ id: 900 - at, atMs: startedAtMs - ago * minute, ...row }))
