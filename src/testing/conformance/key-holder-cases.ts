/**
 * The heart of deduplication: what holds a key, what the next enqueue of that key says, and what it is told. One table,
 * every cell of it a case. A fingerprint of another version tells nothing, so it never accuses: it counts as the same.
 */
import type { NewJob } from '../../core/job.ts'
import type { EnqueueVerdict } from '../../core/storage.ts'
import { boom, bury, cancel, complete } from './actions.ts'
import { fromTable, type CaseGroup } from './cases.ts'
import { day, fingerprint, hour, keyedJob, keyOf, minute, second } from './new-job.ts'
import { keyed, operator, present, type Scene } from './scene.ts'

const key = 'order-1'
const says = { amount: 1 }

/** The job or marker that stands when the duplicate comes. */
interface Holder {
  readonly jobId: string
  /** What `key-reused` can show: null where the payload is not kept. */
  readonly payload: string | null
}

interface HolderRow {
  readonly holder: string
  readonly prepare: (scene: Scene) => Promise<Holder>
  /** For a duplicate with the same, or an incomparable fingerprint. */
  readonly answer: (holder: Holder) => EnqueueVerdict
  /** Whether another fingerprint is a reuse of the key. */
  readonly holds: boolean
}

const inserted = (): EnqueueVerdict => ({ kind: 'inserted' })

async function hot(scene: Scene, overrides: Partial<NewJob> = {}): Promise<Holder> {
  const job = await scene.addKeyed(key, { says, ...overrides })
  return { jobId: job.id, payload: job.payload }
}

async function planted(scene: Scene, state: 'terminal' | 'compensated', expiresInMs?: number): Promise<Holder> {
  const jobId = scene.runtime.newId()
  await scene.plantMarker(keyOf(scene.runtime, key).hash, {
    state,
    jobId,
    fingerprint: fingerprint(scene.runtime, says),
    failure: state === 'terminal' ? boom : null,
    expiresAtMs: expiresInMs === undefined ? undefined : (await scene.nowMs()) + expiresInMs,
  })
  return { jobId, payload: null }
}

const rows: readonly HolderRow[] = [
  {
    holder: 'nobody',
    prepare: async (scene) => ({ jobId: scene.runtime.newId(), payload: null }),
    answer: inserted,
    holds: false,
  },
  {
    holder: 'a scheduled job',
    prepare: (scene) => hot(scene, { due: { kind: 'in', delayMs: hour } }),
    answer: ({ jobId }) => ({ kind: 'active', jobId, state: 'scheduled' }),
    holds: true,
  },
  {
    holder: 'a pending job',
    prepare: (scene) => hot(scene),
    answer: ({ jobId }) => ({ kind: 'active', jobId, state: 'pending' }),
    holds: true,
  },
  {
    holder: 'a fetched job',
    async prepare(scene) {
      const holder = await hot(scene)
      await scene.fetchOne(keyed)
      return holder
    },
    answer: ({ jobId }) => ({ kind: 'active', jobId, state: 'fetched' }),
    holds: true,
  },
  {
    holder: 'a processing job',
    async prepare(scene) {
      const job = await scene.runningKeyed(key, keyed, { says })
      return { jobId: job.lease.jobId, payload: job.payload }
    },
    answer: ({ jobId }) => ({ kind: 'active', jobId, state: 'processing' }),
    holds: true,
  },
  {
    holder: 'a completed job',
    async prepare(scene) {
      const job = await scene.runningKeyed(key, keyed, { says })
      await scene.mustSettle(job.lease, complete(), 'completed')
      return { jobId: job.lease.jobId, payload: job.payload }
    },
    answer: ({ jobId }) => ({ kind: 'completed', jobId, result: '{"charge":"ch_1"}' }),
    holds: true,
  },
  {
    holder: 'a completed job of which a stub is kept',
    async prepare(scene) {
      const job = await scene.runningKeyed(key, keyed, { says })
      await scene.mustSettle(job.lease, complete({ keep: { kind: 'stub', forMs: hour } }), 'completed')
      return { jobId: job.lease.jobId, payload: null }
    },
    answer: ({ jobId }) => ({ kind: 'completed', jobId, result: '{"charge":"ch_1"}' }),
    holds: true,
  },
  {
    holder: 'a completed job whose history is pruned while its marker stands',
    async prepare(scene) {
      const job = await scene.runningKeyed(key, keyed, { says })
      await scene.mustSettle(job.lease, complete(), 'completed')
      await scene.elapse(minute)
      await scene.driver.prune({ limit: 100, archiveRetentionMs: second, dlqRetentionMs: day })
      return { jobId: job.lease.jobId, payload: null }
    },
    answer: ({ jobId }) => ({ kind: 'completed', jobId, result: '{"charge":"ch_1"}' }),
    holds: true,
  },
  {
    holder: 'a job in review',
    async prepare(scene) {
      const job = await scene.runningKeyed(key, keyed, { says })
      await scene.mustSettle(job.lease, bury({ reason: 'Interrupted', hold: true }), 'dead')
      return { jobId: job.lease.jobId, payload: job.payload }
    },
    answer: ({ jobId }) => ({ kind: 'in-review', jobId }),
    holds: true,
  },
  {
    holder: 'a terminal failure (H21)',
    prepare: (scene) => planted(scene, 'terminal'),
    answer: ({ jobId }) => ({ kind: 'failed', jobId, failure: boom }),
    holds: true,
  },
  {
    holder: 'a compensated operation',
    prepare: (scene) => planted(scene, 'compensated', day),
    answer: ({ jobId }) => ({ kind: 'compensated', jobId }),
    holds: true,
  },
  {
    holder: 'an expired marker',
    async prepare(scene) {
      const job = await scene.runningKeyed(key, keyed, { says })
      await scene.mustSettle(job.lease, complete({ markerLifeMs: minute }), 'completed')
      await scene.elapse(2 * minute)
      return { jobId: job.lease.jobId, payload: job.payload }
    },
    answer: inserted,
    holds: false,
  },
  {
    holder: 'a dead job without a marker',
    async prepare(scene) {
      const job = await scene.runningKeyed(key, keyed, { says })
      await scene.mustSettle(job.lease, bury(), 'dead')
      return { jobId: job.lease.jobId, payload: job.payload }
    },
    answer: inserted,
    holds: false,
  },
  {
    holder: 'a job cancelled while it waited',
    async prepare(scene) {
      const holder = await hot(scene)
      scene.expect(await scene.inspector.cancel(holder.jobId, operator)).toEqual({ kind: 'cancelled' })
      return holder
    },
    answer: inserted,
    holds: false,
  },
  {
    holder: 'a job cancelled by its owner',
    async prepare(scene) {
      const job = await scene.runningKeyed(key, keyed, { says })
      await scene.mustSettle(job.lease, cancel(), 'cancelled')
      return { jobId: job.lease.jobId, payload: job.payload }
    },
    answer: inserted,
    holds: false,
  },
  {
    holder: 'a skipped duplicate of an expired marker',
    async prepare(scene) {
      const job = await scene.runningKeyed(key, keyed, { says })
      await scene.mustSettle(
        job.lease,
        { kind: 'skip', duplicateOf: scene.runtime.newId(), holder: 'completed', result: null },
        'skipped',
      )
      return { jobId: job.lease.jobId, payload: job.payload }
    },
    answer: inserted,
    holds: false,
  },
]

type Sameness = 'the same' | 'another' | 'an incomparable'
const samenesses: readonly Sameness[] = ['the same', 'another', 'an incomparable']

function duplicate(scene: Scene, sameness: Sameness): NewJob {
  if (sameness === 'another') return keyedJob(scene.runtime, key, { says: { amount: 2 } })
  const same = keyedJob(scene.runtime, key, { says })
  if (sameness === 'the same') return same
  return { ...same, fingerprint: `0:${present(same.fingerprint, 'a fingerprint').split(':')[1]}` }
}

export const keyHolderCases: CaseGroup = {
  title: 'who holds a key, and what its next enqueue is told',
  cases: fromTable(
    rows.flatMap((row) => samenesses.map((sameness) => ({ ...row, sameness }))),
    ({ holder, sameness, holds }) =>
      `${sameness === 'another' && holds ? 'H19 ' : ''}held by ${holder}, asked for with ${sameness} fingerprint`,
    async (scene, { prepare, answer, holds, sameness }) => {
      const holder = await prepare(scene)
      const enqueuedBefore = await scene.counter('jobs.enqueued')
      const job = duplicate(scene, sameness)
      const verdict = await scene.send(job)

      const reused = holds && sameness === 'another'
      scene
        .expect(verdict)
        .toEqual(reused ? { kind: 'key-reused', jobId: holder.jobId, holderPayload: holder.payload } : answer(holder))
      const isIn = verdict.kind === 'inserted'
      scene.expect(await scene.place(job.id)).toBe(isIn ? 'pending' : 'nowhere')
      scene.expect((await scene.counter('jobs.enqueued')) - enqueuedBefore).toBe(isIn ? 1 : 0)
      scene.expect(await scene.counter('jobs.deduplicated')).toBe(isIn ? 0 : 1)
      scene.expect(await scene.counter('jobs.deduplicated', verdict.kind)).toBe(isIn ? 0 : 1)
    },
  ),
}
