/** A lost reply is answered by sending the same job again: in whatever pillar it is by now, it is never stored twice. */
import type { NewJob } from '../../core/job.ts'
import { bury, complete, skip } from './actions.ts'
import { fromTable, type CaseGroup } from './cases.ts'
import { fingerprint, hour, keyedJob, keyOf, newJob } from './new-job.ts'
import { keyed, operator, type Scene } from './scene.ts'

interface ResendRow {
  readonly where: string
  readonly prepare: (scene: Scene, job: NewJob) => Promise<void>
}

const rows: readonly ResendRow[] = [
  { where: 'pending', prepare: async () => undefined },
  {
    where: 'fetched',
    async prepare(scene) {
      await scene.fetchOne(keyed)
    },
  },
  {
    where: 'processing',
    async prepare(scene) {
      await scene.mustStart((await scene.fetchOne(keyed)).lease, keyed)
    },
  },
  {
    where: 'completed',
    async prepare(scene) {
      const job = await scene.fetchOne(keyed)
      await scene.mustStart(job.lease, keyed)
      await scene.mustSettle(job.lease, complete(), 'completed')
    },
  },
  {
    where: 'completed and kept as a stub',
    async prepare(scene) {
      const job = await scene.fetchOne(keyed)
      await scene.mustStart(job.lease, keyed)
      await scene.mustSettle(job.lease, complete({ keep: { kind: 'stub', forMs: hour } }), 'completed')
    },
  },
  {
    where: 'skipped',
    async prepare(scene) {
      await scene.mustSettle((await scene.fetchOne(keyed)).lease, skip(scene.runtime.newId()), 'skipped')
    },
  },
  {
    where: 'cancelled',
    async prepare(scene, job) {
      await scene.inspector.cancel(job.id, operator)
    },
  },
  {
    where: 'dead',
    async prepare(scene) {
      const job = await scene.fetchOne(keyed)
      await scene.mustStart(job.lease, keyed)
      await scene.mustSettle(job.lease, bury(), 'dead')
    },
  },
  {
    where: 'dead and in doubt',
    async prepare(scene) {
      const job = await scene.fetchOne(keyed)
      await scene.mustStart(job.lease, keyed)
      await scene.mustSettle(job.lease, bury({ hold: true }), 'dead')
    },
  },
]

const resends = fromTable(
  rows,
  ({ where }) => `a job that is ${where} is recognised when it is sent again`,
  async (scene, { prepare }) => {
    const job = keyedJob(scene.runtime, 'order-1', { mayExist: true })
    await scene.insert(job)
    await prepare(scene, job)
    const before = await scene.record(job.id)
    scene.expect(await scene.send(job)).toEqual({ kind: 'resent' })
    scene.expect(await scene.record(job.id)).toEqual(before)
    scene.expect(await scene.counter('jobs.enqueued')).toBe(1)
    scene.expect(await scene.counter('jobs.deduplicated')).toBe(0)
  },
)

// The client gave up, repeated the call, and the job went its way; now the first call arrives after all.
const lateCalls = fromTable(
  rows,
  ({ where }) => `a first call that arrives when its job is ${where} stores nothing`,
  async (scene, { prepare }) => {
    const job = keyedJob(scene.runtime, 'order-1', { mayExist: true })
    await scene.insert(job)
    await prepare(scene, job)
    const before = await scene.record(job.id)
    scene.expect((await scene.send({ ...job, mayExist: false })).kind).not.toBe('inserted')
    scene.expect(await scene.record(job.id)).toEqual(before)
    scene.expect(await copies(scene, job.id)).toBe(1)
    scene.expect(await scene.counter('jobs.enqueued')).toBe(1)
  },
)

async function copies(scene: Scene, id: string): Promise<number> {
  const pillars = await Promise.all([scene.all('hot'), scene.all('archive'), scene.all('dlq')])
  return pillars.flat().filter((job) => job.id === id).length
}

const changes: readonly (readonly [string, (scene: Scene, job: NewJob) => NewJob])[] = [
  ['type', (_scene, job) => ({ ...job, type: 'payment.refund.v1' })],
  ['payload', (_scene, job) => ({ ...job, payload: '{"amount":2}' })],
  ['key', (scene, job) => ({ ...job, key: keyOf(scene.runtime, 'order-2') })],
]

const places: readonly ResendRow[] = rows.filter(({ where }) => ['pending', 'completed', 'dead'].includes(where))

const reuses = fromTable(
  changes.flatMap(([field, change]) => places.map((place) => ({ field, change, ...place }))),
  ({ field, where }) => `the id of a job that is ${where}, sent with another ${field}, is refused`,
  async (scene, { change, prepare }) => {
    const job = keyedJob(scene.runtime, 'order-1', { mayExist: true })
    await scene.insert(job)
    await prepare(scene, job)
    const before = await scene.record(job.id)
    scene.expect(await scene.send(change(scene, job))).toEqual({ kind: 'id-reused' })
    scene.expect(await scene.record(job.id)).toEqual(before)
    scene.expect(await scene.counter('jobs.enqueued')).toBe(1)
  },
)

export const resendCases: CaseGroup = {
  title: 'resend',
  cases: {
    ...resends,
    ...lateCalls,
    ...reuses,

    'a job without a key is recognised by its id': async (scene) => {
      const job = newJob(scene.runtime, { mayExist: true })
      await scene.insert(job)
      scene.expect(await scene.send(job)).toEqual({ kind: 'resent' })
      scene.expect(await scene.all('hot')).toHaveLength(1)
    },

    'a first call without a key that arrives when its job is over stores nothing, and its neighbours are stored':
      async (scene) => {
        const { expect } = scene
        const { lease } = await scene.running()
        await scene.mustSettle(lease, complete(), 'completed')
        const job = newJob(scene.runtime, { id: lease.jobId })
        const other = newJob(scene.runtime)
        expect(await scene.driver.enqueue([job, other])).toEqual([{ kind: 'resent' }, { kind: 'inserted' }])
        expect([await copies(scene, job.id), await copies(scene, other.id)]).toEqual([1, 1])
      },

    'a scheduled job sent again keeps its first time': async (scene) => {
      const job = newJob(scene.runtime, { mayExist: true, due: { kind: 'in', delayMs: hour } })
      await scene.insert(job)
      const { runAtMs } = await scene.record(job.id)
      await scene.elapse(hour / 2)
      scene.expect(await scene.send(job)).toEqual({ kind: 'resent' })
      scene.expect((await scene.record(job.id)).runAtMs).toBe(runAtMs)
    },

    'the same job twice in one batch is stored once': async (scene) => {
      const job = newJob(scene.runtime, { mayExist: true })
      scene.expect(await scene.driver.enqueue([job, job])).toEqual([{ kind: 'inserted' }, { kind: 'resent' }])
      scene.expect(await scene.counter('jobs.enqueued')).toBe(1)
    },

    'an id that nobody promised to be new is never stored twice': async (scene) => {
      const job = await scene.add()
      const verdict = await scene.send({ ...job, mayExist: false })
      scene.expect(verdict.kind).not.toBe('inserted')
      scene.expect(await scene.all('hot')).toHaveLength(1)
    },

    'a resend that carries a raw job finds the row whose key its worker has claimed since': async (scene) => {
      const { runtime, expect } = scene
      const job = keyedJob(runtime, 'order-1', { mayExist: true, key: undefined, fingerprint: undefined })
      await scene.insert(job)
      const { lease } = await scene.fetchOne(keyed)
      const claim = { lease, key: keyOf(runtime, 'order-1'), fingerprint: fingerprint(runtime, { amount: 1 }) }
      expect(await scene.driver.claim([claim])).toEqual([{ kind: 'claimed' }])
      expect(await scene.send(job)).toEqual({ kind: 'resent' })
    },

    'an id of a resent row does not shield another key from its holder': async (scene) => {
      const { runtime, expect } = scene
      const holder = await scene.addKeyed('order-1')
      const other = keyedJob(runtime, 'order-1', { mayExist: true })
      expect(await scene.send(other)).toEqual({ kind: 'active', jobId: holder.id, state: 'pending' })
      expect(await scene.send(other)).toEqual({ kind: 'active', jobId: holder.id, state: 'pending' })
      expect(await scene.place(other.id)).toBe('nowhere')
    },
  },
}
