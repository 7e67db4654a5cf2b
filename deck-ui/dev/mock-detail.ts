/** The story of one invented job. */
import type {
  EffectView,
  ErrorView,
  JobDetail,
  JobSummary,
  ReviewDetail,
  ReviewView,
  TimelineEntry,
} from '../../src/deck/wire-jobs.ts'
import { audit, jobs, workers } from './mock-data.ts'

const worker = workers[1]?.id ?? ''

function errorsOf(job: JobSummary): readonly ErrorView[] {
  if (job.message === null) return []
  const [name = 'Error', ...rest] = job.message.split(': ')
  const stack = `${job.message}
    at charge (file:///app/src/payments/charge.ts:41:17)
    at async run (file:///app/src/payments/capture.ts:18:13)
    at async process (file:///app/node_modules/chokaq/dist/engine/process/run.js:88:20)`
  const of = (attempt: number, agoMs: number): ErrorView => ({
    name,
    message: rest.join(': ') === '' ? (job.message ?? '') : rest.join(': '),
    code: job.message?.includes('ECONN') === true ? 'ECONNRESET' : null,
    stack,
    atMs: (job.finishedAtMs ?? job.createdAtMs) - agoMs,
    attempt,
  })
  return [of(job.attempt, 0), of(Math.max(1, job.attempt - 1), 61_000)]
}

function effectsOf(job: JobSummary): readonly EffectView[] {
  if (!job.type.startsWith('payment.') || job.pillar === 'hot') return []
  const openedAtMs = (job.startedAtMs ?? job.createdAtMs) + 1_200
  const base = {
    kind: 'effect' as const,
    item: '',
    provider: 'stripe',
    generation: 1,
    workerId: worker,
    input: '{"amount":4900,"currency":"eur","customer":"cus_Q81x"}',
    error: null,
    replayed: false,
  }
  const isRefund = job.type.startsWith('payment.refund')
  const open: EffectView = {
    ...base,
    id: 'e2',
    name: isRefund ? 'refund' : 'charge',
    state: job.inDoubt ? (isRefund ? 'ambiguous' : 'open') : 'done',
    providerKey: isRefund ? null : `ck_${job.key}_1_charge`,
    attempt: job.attempt,
    openedAtMs,
    closedAtMs: job.inDoubt && !isRefund ? null : openedAtMs + 840,
    result: job.inDoubt ? null : '{"id":"ch_3Q9fK2","status":"succeeded"}',
    ownerGone: !isRefund,
  }
  const before: EffectView = {
    ...base,
    id: 'e1',
    name: 'authorize',
    state: 'done',
    providerKey: `ck_${job.key}_1_authorize`,
    attempt: 1,
    openedAtMs: job.createdAtMs + 1_000,
    closedAtMs: job.createdAtMs + 1_610,
    result: '{"id":"auth_77"}',
    ownerGone: true,
  }
  return job.inDoubt ? [before, open] : [open]
}

type Moment = Omit<TimelineEntry, 'detail' | 'attempt' | 'tone'> & Partial<TimelineEntry>

function timelineOf(job: JobSummary): readonly TimelineEntry[] {
  const at = job.createdAtMs
  const started = job.startedAtMs
  const moments: Moment[] = [{ atMs: at, kind: 'enqueued', title: 'Enqueued', detail: `in queue ${job.queue}` }]
  if (job.inDoubt) {
    moments.push(
      { atMs: at + 400, kind: 'started', title: 'Attempt 1 started', detail: 'on worker worker-eu-1', attempt: 1 },
      { atMs: at + 1_000, kind: 'intent', title: 'About to call authorize', attempt: 1 },
      { atMs: at + 1_610, kind: 'outcome', title: 'authorize: done', tone: 'good', attempt: 1 },
      {
        atMs: at + 2_000,
        kind: 'crashed',
        title: 'Its worker died',
        detail: 'worker-eu-1 sent no beat for 30 s',
        tone: 'warning',
        attempt: 1,
      },
    )
  }
  if (started !== null)
    moments.push({ atMs: started, kind: 'started', title: `Attempt ${job.attempt} started`, attempt: job.attempt })
  if (job.inDoubt) {
    moments.push({
      atMs: (started ?? at) + 1_200,
      kind: 'intent',
      title: 'About to call charge',
      detail: `under provider key ck_${job.key}_1_charge`,
      tone: 'warning',
      attempt: 2,
    })
  }
  if (job.finishedAtMs !== null) {
    const isDead = job.pillar === 'dlq'
    const title = isDead
      ? job.inDoubt
        ? `Parked for a person: ${job.reason}`
        : `Dead: ${job.reason}`
      : `${job.state[0]?.toUpperCase()}${job.state.slice(1)}`
    moments.push({
      atMs: job.finishedAtMs,
      kind: isDead ? 'dead' : 'finished',
      title,
      detail: job.message,
      tone: isDead ? 'bad' : 'good',
      attempt: job.attempt,
    })
  }
  return moments.map((moment) => ({ detail: null, attempt: null, tone: 'neutral', ...moment }))
}

const schema = {
  type: 'object',
  properties: { paymentAttemptId: { type: 'string' }, amountCents: { type: 'integer', exclusiveMinimum: 0 } },
  required: ['paymentAttemptId', 'amountCents'],
}

export function detailOf(job: JobSummary): JobDetail {
  const isDead = job.pillar === 'dlq'
  const doubt = job.inDoubt ? 'It is in doubt: decide its review.' : null
  const act = (name: JobDetail['acts'][number]['act'], why: string | null) => ({
    act: name,
    allowed: why === null,
    why,
  })
  return {
    job: {
      ...job,
      tenant: null,
      keyHash: job.key === null ? null : '9f2c'.repeat(16),
      keyScope: job.key === null ? null : job.type.replace(/\.v\d+$/, ''),
      generation: 1,
      revision: isDead ? 1 : 0,
      workerId: job.pillar === 'hot' ? null : worker,
      parentId: null,
      duplicateOf: job.state === 'skipped' ? (jobs.archive[40]?.id ?? null) : null,
      traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
      payload: JSON.stringify({
        paymentAttemptId: job.key,
        amountCents: 4_900,
        card: { brand: 'visa', number: '[redacted]' },
      }),
      payloadIsCut: false,
      result: job.state === 'completed' ? '{"chargeId":"ch_3Q9fK2"}' : null,
    },
    timeline: timelineOf(job),
    errors: errorsOf(job),
    effects: effectsOf(job),
    marker: job.inDoubt ? { state: 'in_doubt', jobId: job.id, generation: 1, expiresAtMs: null } : null,
    duplicates: job.inDoubt ? jobs.archive.slice(20, 22).map((one) => ({ ...one, state: 'skipped' })) : [],
    audit: isDead ? audit.slice(2, 3) : [],
    payloadSchema: JSON.stringify(schema),
    acts: [
      act('cancel', job.pillar === 'hot' ? null : 'It has left hot.'),
      act('retry-now', job.state === 'scheduled' ? null : 'It is not scheduled.'),
      act('resurrect-continue', isDead ? doubt : 'Only a dead job can come back.'),
      act('resurrect-new', isDead ? null : 'Only a dead job can come back.'),
      act('edit', isDead ? null : 'Only a dead job can come back.'),
      act('purge', isDead ? doubt : 'Only dead jobs can be deleted.'),
      act('review', job.inDoubt ? null : 'It waits for nobody.'),
    ],
  }
}

export function reviewOf(job: JobSummary): ReviewView {
  const open = effectsOf(job).find(({ state }) => state === 'open' || state === 'ambiguous')
  return {
    id: job.id,
    revision: 1,
    type: job.type,
    queue: job.queue,
    key: job.key ?? '',
    reason: job.reason ?? '',
    message: job.message ?? '',
    effect: open?.name ?? null,
    item: null,
    intentAtMs: open?.openedAtMs ?? null,
    attempts: job.attempt,
    crashes: job.crashCount,
    ownerGone: open?.ownerGone ?? null,
  }
}

export function reviewDetailOf(job: JobSummary): ReviewDetail {
  const hasCall = effectsOf(job).length > 0
  return {
    review: reviewOf(job),
    detail: detailOf(job),
    decisions: [
      {
        decision: 'adopt',
        allowed: true,
        explanation: hasCall
          ? 'The call counts as done with the result you give, and the handler goes on from there.'
          : 'The job is complete with the result you give; duplicates are answered with it.',
      },
      {
        decision: 'retry',
        allowed: true,
        explanation:
          'Calls in doubt count as not executed, and the job runs again under the same keys. If the call did act, this is a second action.',
      },
      {
        decision: 'abandon',
        allowed: true,
        explanation: 'The job is archived as cancelled; duplicates are answered that it failed.',
      },
      {
        decision: 'compensate',
        allowed: false,
        explanation: 'an effect is still in doubt. Adopt or retry first, so that it is known what has to be undone.',
      },
    ],
  }
}
