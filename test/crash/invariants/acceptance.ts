// What was accepted is there, once, as it was sent, and nothing else is.
import { groupBy, type Evidence } from '../evidence.ts'
import { hashOf } from '../fixtures/history-writer.ts'
import type { JobRecord } from '../../../src/core/job.ts'

export const acceptance = {
  /** No accepted job is lost: it is finished, dead, waiting for its time, or in a paused queue. */
  I1({ of, snapshot }: Bound) {
    const jobs = new Map(snapshot.jobs.map((job) => [job.id, job]))
    const paused = new Set(snapshot.queues.filter((queue) => queue.paused).map(({ name }) => name))
    const missing = new Set(of('enq.ok').flatMap(({ job }) => (jobs.has(job) ? [] : [job])))
    // Retention and operators delete rows for good; the counters say how many.
    const areAllDeleted = missing.size <= total(snapshot, 'jobs.pruned') + total(snapshot, 'jobs.purged')
    return of('enq.ok').flatMap(({ op, job: id }) => {
      const job = jobs.get(id)
      if (job === undefined) return areAllDeleted ? [] : [`${op} was accepted as job ${id}, which is nowhere`]
      if (job.pillar !== 'hot' || job.state === 'scheduled' || paused.has(job.queue)) return []
      return [`${op}, job ${id}, is still ${job.state} after the drain`]
    })
  },

  /** Nothing from nowhere: what runs, and what is stored, was sent by somebody. */
  I2({ of, snapshot }: Bound) {
    const sent = new Set(of('enq.call').map(({ hash }) => hash))
    return [
      ...of('claim', 'run.begin')
        .filter(({ hash }) => !sent.has(hash))
        .map(({ kind, job }) => `a ${kind} of job ${job}, which nobody sent`),
      ...snapshot.jobs
        .filter((job) => !sent.has(contentOf(job)))
        .map(({ id }) => `job ${id} is stored, and nobody sent it`),
    ]
  },

  /** What was sent under a key or an id of the caller's is there at most once, whatever its caller was told. */
  I3({ of, snapshot }: Bound) {
    const stored = groupBy(snapshot.jobs, contentOf)
    return of('enq.call')
      .filter(({ key, id }) => key !== null || id !== null)
      .flatMap(({ op, hash }) => {
        const count = stored.get(hash)?.length ?? 0
        return count > 1 ? [`${op} was sent under a key or an id and is there ${count} times`] : []
      })
  },

  /** A handler gets what was sent, on every attempt. */
  I4({ of }: Bound) {
    const claimed = new Map(of('claim').map(({ job, hash }) => [job, hash]))
    return of('run.begin').flatMap(({ job, hash, attempt }) => {
      const sent = claimed.get(job)
      return sent === undefined || sent === hash ? [] : [`attempt ${attempt} of job ${job} got another payload`]
    })
  },

  /** One active job per key, and a "duplicate" answer names a job that was there before the reply. */
  I17({ of, snapshot }: Bound) {
    const jobs = new Map(snapshot.jobs.map((job) => [job.id, job]))
    const keyed = snapshot.jobs.filter(({ keyHash, pillar }) => keyHash !== null && pillar === 'hot')
    const twice = [...groupBy(keyed, ({ keyHash }) => keyHash ?? '')].filter(([, held]) => held.length > 1)
    return [
      ...twice.map(([key, held]) => `key ${key.slice(0, 8)} is held by ${held.length} active jobs`),
      ...of('enq.ok')
        .filter(({ outcome }) => outcome !== 'enqueued')
        .flatMap(({ op, outcome, job: id, at }) => {
          const holder = jobs.get(id)
          if (holder !== undefined && holder.createdAtMs <= at) return []
          return [`${op} was answered ${outcome} by job ${id}, which was not there`]
        }),
    ]
  },

  /** A job made in the caller's transaction is there if and only if the caller's row is. */
  I20({ of, snapshot }: Bound) {
    const rows = new Set(snapshot.userRows.flatMap(({ op }) => (op.startsWith('outbox:') ? [op.slice(7)] : [])))
    const stored = new Set(snapshot.jobs.map(contentOf))
    return of('enq.call')
      .filter(({ outbox }) => outbox)
      .filter(({ op, hash }) => rows.has(op) !== stored.has(hash))
      .map(({ op }) => `${op}: its row is ${rows.has(op) ? 'there' : 'nowhere'}, and its job is not with it`)
  },

  /** The counters account for every job. */
  I21({ snapshot }: Bound) {
    const accounted = snapshot.jobs.length + total(snapshot, 'jobs.pruned') + total(snapshot, 'jobs.purged')
    const enqueued = total(snapshot, 'jobs.enqueued')
    return enqueued === accounted ? [] : [`${enqueued} jobs were enqueued and ${accounted} are accounted for`]
  },
}

interface Bound {
  readonly of: Evidence['of']
  readonly snapshot: Evidence['snapshot']
}

function total({ stats }: Evidence['snapshot'], name: string): number {
  return stats.filter((row) => row.name === name).reduce((sum, row) => sum + row.value, 0)
}

function contentOf(job: JobRecord): string {
  return hashOf(JSON.parse(job.payload ?? 'null'))
}
