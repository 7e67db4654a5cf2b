// How often a job runs and ends, what each attempt costs, and what a key allows.
import { groupBy, type Evidence, type Run } from '../evidence.ts'
import { hasEnded } from './ownership.ts'

const terminal: ReadonlySet<string> = new Set(['completed', 'conflict', 'dead', 'skipped', 'cancelled'])

export const attempts = {
  /** A job ends once for each time somebody brought it back, and stands in exactly one pillar. */
  I7(evidence: Evidence) {
    const { snapshot } = evidence
    const ends = groupBy(
      [
        ...evidence.of('ack.ok').filter(({ outcome, repeated }) => terminal.has(outcome) && !repeated),
        ...evidence.of('rescued').filter(({ went }) => went !== 'pending'),
        ...evidence.of('cancel.ok').filter(({ verdict }) => verdict === 'cancelled'),
      ],
      ({ job }) => job,
    )
    const revivals = groupBy(evidence.of('resurrect.call'), ({ job }) => job)
    const twice = [...groupBy(snapshot.jobs, ({ id }) => id)].filter(([, rows]) => rows.length > 1)
    return [
      ...[...ends].flatMap(([job, lines]) => {
        const allowed = 1 + (revivals.get(job)?.length ?? 0)
        return lines.length > allowed ? [`job ${job} ended ${lines.length} times`] : []
      }),
      ...twice.map(([id, rows]) => `job ${id} stands in ${rows.map(({ pillar }) => pillar).join(' and ')}`),
    ]
  },

  /** No attempt number comes twice or falls; gaps are starts whose worker died; budgets hold. */
  I8(evidence: Evidence) {
    const records = new Map(evidence.snapshot.jobs.map((job) => [job.id, job]))
    const policies = new Map(evidence.of('policy').map(({ type, policy }) => [type, policy]))
    return [...groupBy(evidence.of('run.begin'), ({ job }) => job)].flatMap(([job, begins]) => {
      const record = records.get(job)
      const numbers = begins.map(({ attempt }) => attempt)
      const budget = policies.get(record?.type ?? '')?.attempts ?? Infinity
      return [
        ...(numbers.every((n, i) => i === 0 || n > (numbers[i - 1] ?? 0))
          ? []
          : [`the attempts of job ${job} are ${numbers.join(', ')}`]),
        ...gaps(evidence, job, numbers),
        ...(record !== undefined && record.attempt < Math.max(...numbers)
          ? [`job ${job} ran attempt ${Math.max(...numbers)}, and its row says ${record.attempt}`]
          : []),
        ...((record?.failureCount ?? 0) > budget
          ? [`job ${job} failed ${record?.failureCount} of ${budget} times`]
          : []),
        ...((record?.crashCount ?? 0) > evidence.rules.crashBudget + 1
          ? [`job ${job} crashed ${record?.crashCount} times`]
          : []),
      ]
    })
  },

  /** What kills its worker every time ends in the DLQ as Interrupted; what stands beside it completes. */
  I9({ of, snapshot, rules }: Evidence) {
    return of('enq.call')
      .filter(({ poison }) => poison)
      .flatMap(({ op }) => {
        const job = snapshot.jobs.find(({ payload }) => payload?.includes(`"op":"${op}"`) === true)
        if (job === undefined) return []
        if (job.pillar !== 'dlq' || job.reason !== 'Interrupted') return [`the poison ${op} is ${job.state}`]
        const starts = of('run.begin').filter((line) => line.job === job.id).length
        // A fast start is not charged, so one start more than crashes.
        return starts > rules.crashBudget + 2 ? [`the poison ${op} killed its worker ${starts} times`] : []
      })
  },

  /** The wait after the n-th failure is what the policy says. */
  I13(evidence: Evidence) {
    const policies = new Map(evidence.of('policy').map(({ type, policy }) => [type, policy]))
    const claims = new Map(evidence.of('claim').map((claim) => [`${claim.job}/${claim.fence}`, claim]))
    return evidence.of('ack.call').flatMap(({ job, fence, charged, delayMs }) => {
      const claim = claims.get(`${job}/${fence}`)
      const policy = policies.get(claim?.type ?? '')
      if (!charged || claim === undefined || policy === undefined) return []
      const plain = Math.min(policy.capMs, policy.baseMs * policy.factor ** claim.failures)
      const isWithin = delayMs !== null && Math.abs(delayMs - plain) <= plain * policy.jitter + 1
      return isWithin
        ? []
        : [`failure ${claim.failures + 1} of job ${job} waits ${delayMs} ms instead of about ${plain} ms`]
    })
  },

  /** One run of a key at a time, none after its completion, and exactly one row written with the completion. */
  I19(evidence: Evidence) {
    const keyed = evidence.runs.filter(({ begin }) => begin.key !== null)
    return [...[...groupBy(keyed, ({ begin }) => begin.key ?? '')].flatMap(sameKey), ...exactlyOnce(evidence)]

    function sameKey([key, runs]: readonly [string, readonly Run[]]): readonly string[] {
      const doneAtMs = completedAt(evidence, new Set(runs.map(({ begin }) => begin.job)))
      return runs.flatMap((run, i) => [
        ...(run.begin.at > doneAtMs ? [`${key} ran again (job ${run.begin.job}) after it was completed`] : []),
        ...runs.slice(0, i).flatMap((older) => {
          const isOther = older.begin.job !== run.begin.job && (older.endAtMs ?? Infinity) > run.begin.at
          const isLive = isOther && older.lease !== undefined && !hasEnded(older.lease, run.begin.at)
          return isLive ? [`${key} is run by jobs ${older.begin.job} and ${run.begin.job} at once`] : []
        }),
      ])
    }
  },
}

function completedAt(evidence: Evidence, jobs: ReadonlySet<string>): number {
  const done = evidence.of('ack.ok').find(({ job, outcome }) => jobs.has(job) && outcome === 'completed')
  return done?.at ?? Infinity
}

/** Every attempt number that no handler saw needs a lease that ended before its handler began, or a call never answered. */
function gaps(evidence: Evidence, job: string, numbers: readonly number[]): readonly string[] {
  const missing = Math.max(...numbers) - numbers.length
  if (missing <= 0) return []
  const silent = evidence.leases.filter(
    ({ claim }) => claim.job === job && !evidence.runs.some(({ lease }) => lease?.claim === claim),
  ).length
  const answered = new Set(evidence.of('fetch.ok').map(({ call }) => call))
  const unanswered = evidence.of('fetch.call').filter(({ call }) => !answered.has(call)).length
  return missing > silent + unanswered
    ? [`job ${job} has ${missing} attempts that nobody made (${numbers.join(', ')})`]
    : []
}

/** Rows of a completion stand with it alone; those of a checkpoint stand from its commit on, whatever becomes of the job. */
function exactlyOnce({ snapshot }: Evidence): readonly string[] {
  const rows = groupBy(snapshot.userRows, ({ job }) => job)
  return snapshot.jobs
    .filter(({ type }) => type === 'crash.tx.v1' || type === 'crash.step.v1')
    .flatMap(({ id, state, type }) => {
      const count = rows.get(id)?.length ?? 0
      const isRight =
        count === (state === 'completed' ? 1 : 0) || (type === 'crash.step.v1' && state !== 'completed' && count === 1)
      return isRight ? [] : [`job ${id} is ${state} and wrote ${count} rows in its transaction`]
    })
}
