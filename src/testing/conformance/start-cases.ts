/** The start gate: the one place that tells "never started" from "started", and the last look at the marker. */
import { boom, bury, complete, retry } from './actions.ts'
import { fromTable, type CaseGroup } from './cases.ts'
import { fingerprint, hour, keyedJob, keyedPolicy, keyOf, minute, newJob, policy, second } from './new-job.ts'
import { keyed, operator, plain, type Scene } from './scene.ts'
import type { PlantedMarker } from './harness.ts'
import type { HolderState } from '../../core/storage.ts'

interface MarkerCase {
  readonly state: PlantedMarker['state']
  readonly holder: HolderState
}

const markers: readonly MarkerCase[] = [
  { state: 'completed', holder: 'completed' },
  { state: 'in_doubt', holder: 'in-review' },
  { state: 'terminal', holder: 'failed' },
  { state: 'compensated', holder: 'compensated' },
]

const samenesses = [
  { of: 'the same', sameFingerprint: true },
  { of: 'another', sameFingerprint: false },
  { of: 'an incomparable', sameFingerprint: true },
] as const

async function againstMarker(scene: Scene, marker: MarkerCase, of: (typeof samenesses)[number]['of']): Promise<void> {
  const job = await scene.addKeyed('order-1')
  const held = {
    'the same': job.fingerprint ?? null,
    another: fingerprint(scene.runtime, { amount: 2 }),
    'an incomparable': '0:unknown',
  }[of]
  const jobId = scene.runtime.newId()
  const result = marker.state === 'completed' ? '{"charge":"ch_0"}' : null
  const failure = marker.state === 'terminal' ? boom : null
  const hash = keyOf(scene.runtime, 'order-1').hash
  await scene.plantMarker(hash, { state: marker.state, jobId, result, failure, fingerprint: held })
  const { lease } = await scene.fetchOne(keyed)
  const verdict = await scene.start(lease, keyed)
  scene
    .expect(verdict)
    .toMatchObject({ kind: 'duplicate', jobId, holder: marker.holder, sameFingerprint: of !== 'another' })
  if (marker.state === 'completed') scene.expect(verdict).toMatchObject({ result })
  scene.expect(await scene.record(job.id)).toMatchObject({ state: 'fetched', attempt: 0, startedAtMs: null })
  scene.expect(await scene.counter('idempotency.claims', 'claimed')).toBe(0)
}

const duplicates = fromTable(
  markers.flatMap((marker) => samenesses.map(({ of }) => ({ marker, of }))),
  ({ marker, of }) => `R3 a live marker ${marker.state} with ${of} fingerprint stops the start`,
  (scene, { marker, of }) => againstMarker(scene, marker, of),
)

export const startCases: CaseGroup = {
  title: 'start',
  cases: {
    'a start counts the attempt and stamps the times': async (scene) => {
      const { expect } = scene
      const job = await scene.fetched()
      await scene.elapse(minute)
      const verdict = await scene.start(job.lease, plain)
      const record = await scene.record(job.lease.jobId)
      expect(verdict).toEqual({
        kind: 'started',
        attempt: 1,
        startedAtMs: record.startedAtMs,
        firstStartedAtMs: record.firstStartedAtMs,
      })
      expect(record).toMatchObject({ state: 'processing', attempt: 1, token: job.lease.token })
      expect((record.startedAtMs ?? 0) - (record.firstStartedAtMs ?? 0)).toBeLessThan(second)
      expect((record.startedAtMs ?? 0) - (record.fetchedAtMs ?? 0)).toBeGreaterThanOrEqual(minute)
    },

    'the first start is kept when a job starts again': async (scene) => {
      const first = await scene.running()
      const { firstStartedAtMs } = await scene.record(first.lease.jobId)
      await scene.elapse(minute)
      await scene.mustSettle(first.lease, retry(), 'retried')
      const again = await scene.fetchOne(plain)
      scene
        .expect(await scene.start(again.lease, plain))
        .toMatchObject({ kind: 'started', attempt: 2, firstStartedAtMs })
      const record = await scene.record(again.lease.jobId)
      scene.expect((record.startedAtMs ?? 0) - (firstStartedAtMs ?? 0)).toBeGreaterThanOrEqual(minute)
    },

    'a start repeated after a lost reply is recognised and not counted twice': async (scene) => {
      await scene.addKeyed('order-1')
      const job = await scene.fetchOne(keyed)
      scene.expect(await scene.start(job.lease, keyed)).toMatchObject({ kind: 'started', attempt: 1 })
      await scene.elapse(second)
      scene.expect(await scene.start(job.lease, keyed)).toMatchObject({ kind: 'started', attempt: 1 })
      scene.expect((await scene.record(job.lease.jobId)).attempt).toBe(1)
      scene.expect(await scene.counter('idempotency.claims', 'claimed')).toBe(1)
    },

    'the same lease twice in one batch starts once': async (scene) => {
      const { lease } = await scene.fetched()
      const requests = [1, 2].map(() => ({ lease, policy: plain }))
      const verdicts = await scene.driver.start(requests)
      scene.expect(verdicts.map((verdict) => verdict.kind)).toEqual(['started', 'started'])
      scene.expect((await scene.record(lease.jobId)).attempt).toBe(1)
    },

    'a batch gives each row its own verdict, in order': async (scene) => {
      const { runtime, expect } = scene
      await scene.insert(newJob(runtime, { priority: 9 }), keyedJob(runtime, 'order-1', { priority: 8 }))
      await scene.insert(newJob(runtime, { priority: 7 }))
      await scene.plantMarker(keyOf(runtime, 'order-1').hash)
      const [a, b, c] = await scene.fetch([plain, keyed])
      const lost = { jobId: c?.lease.jobId ?? '', token: (c?.lease.token ?? 0) + 1000 }
      const leases = [a?.lease ?? lost, b?.lease ?? lost, lost, c?.lease ?? lost]
      const verdicts = await scene.driver.start(leases.map((lease, n) => ({ lease, policy: n === 1 ? keyed : plain })))
      expect(verdicts.map((verdict) => verdict.kind)).toEqual(['started', 'duplicate', 'lost', 'started'])
      expect(await scene.driver.start([])).toEqual([])
    },

    'a keyed start counts as claimed, one without a key does not': async (scene) => {
      await scene.running()
      scene.expect(await scene.counter('idempotency.claims')).toBe(0)
      await scene.runningKeyed('order-1')
      scene.expect(await scene.counter('idempotency.claims', 'claimed')).toBe(1)
    },

    ...duplicates,

    'an expired marker does not stop the start': async (scene) => {
      const expiresAtMs = (await scene.nowMs()) + minute
      await scene.addKeyed('order-1')
      await scene.plantMarker(keyOf(scene.runtime, 'order-1').hash, { expiresAtMs })
      const job = await scene.fetchOne(keyed)
      await scene.elapse(minute + second)
      scene.expect((await scene.start(job.lease, keyed)).kind).toBe('started')
    },

    'H1 the own marker in doubt does not make a job its own duplicate': async (scene) => {
      const job = await scene.addKeyed('order-1')
      await scene.plantMarker(keyOf(scene.runtime, 'order-1').hash, { state: 'in_doubt', jobId: job.id })
      const { lease } = await scene.fetchOne(keyed)
      scene.expect((await scene.start(lease, keyed)).kind).toBe('started')
    },

    'H1 a job that crashed is not a duplicate of itself': async (scene) => {
      const first = await scene.runningKeyed('order-1')
      await scene.driver.rescue({ deadWorkerIds: ['worker-1'], limit: 10 })
      const again = await scene.fetchOne(keyed, { workerId: 'worker-2' })
      scene.expect(again.lease.jobId).toBe(first.lease.jobId)
      scene.expect(await scene.start(again.lease, keyed)).toMatchObject({ kind: 'started', attempt: 2 })
    },

    'a queue paused since the fetch stops the start': async (scene) => {
      const job = await scene.fetched()
      await scene.inspector.setQueue({ name: 'default', paused: true }, operator)
      scene.expect(await scene.start(job.lease, plain)).toEqual({ kind: 'paused' })
      scene.expect(await scene.record(job.lease.jobId)).toMatchObject({ state: 'fetched', attempt: 0 })
      await scene.inspector.setQueue({ name: 'default', paused: false }, operator)
      scene.expect((await scene.start(job.lease, plain)).kind).toBe('started')
    },

    'a start that had happened is confirmed, whatever was paused since': async (scene) => {
      const job = await scene.running()
      await scene.inspector.setQueue({ name: 'default', paused: true }, operator)
      scene.expect(await scene.start(job.lease, plain)).toMatchObject({ kind: 'started', attempt: 1 })
    },

    'a cancel asked for since the fetch stops the start': async (scene) => {
      const job = await scene.fetched()
      scene.expect(await scene.inspector.cancel(job.lease.jobId, operator)).toEqual({ kind: 'requested' })
      scene.expect(await scene.start(job.lease, plain)).toEqual({ kind: 'cancelled' })
      scene.expect(await scene.record(job.lease.jobId)).toMatchObject({ state: 'fetched', attempt: 0 })
    },

    'a retry lifetime that is over stops the start': async (scene) => {
      const short = policy({ retryLifetimeMs: 10 * minute })
      const first = await scene.running(short)
      await scene.elapse(9 * minute)
      await scene.mustSettle(first.lease, retry(), 'retried')
      const again = await scene.fetchOne(short)
      await scene.mustStart(again.lease, short)
      await scene.mustSettle(again.lease, retry(), 'retried')
      await scene.elapse(2 * minute)
      const third = await scene.fetchOne(short)
      scene.expect(await scene.start(third.lease, short)).toEqual({ kind: 'expired' })
      scene.expect((await scene.record(third.lease.jobId)).attempt).toBe(2)
    },

    'a job that never started does not expire': async (scene) => {
      const short = policy({ retryLifetimeMs: minute })
      await scene.add()
      await scene.elapse(5 * hour)
      const job = await scene.fetchOne(short)
      scene.expect((await scene.start(job.lease, short)).kind).toBe('started')
    },

    'H8 a stale owner cannot start': async (scene) => {
      const job = await scene.fetched()
      await scene.driver.rescue({ deadWorkerIds: ['worker-1'], limit: 10 })
      scene.expect(await scene.start(job.lease, plain)).toEqual({ kind: 'lost' })
      const again = await scene.fetchOne(plain, { workerId: 'worker-2' })
      scene.expect(await scene.start(job.lease, plain)).toEqual({ kind: 'lost' })
      scene.expect(await scene.record(again.lease.jobId)).toMatchObject({ state: 'fetched', attempt: 0 })
    },

    'a job that is finished cannot be started by its last owner': async (scene) => {
      for (const action of [complete(), bury(), retry()]) {
        const job = await scene.running()
        await scene.settle(job.lease, action)
        scene.expect(await scene.start(job.lease, plain)).toEqual({ kind: 'lost' })
      }
    },

    'the policy of the start decides what a crash means later': async (scene) => {
      const review = keyedPolicy({ whenInterrupted: 'review' })
      const job = await scene.runningKeyed('order-1', review)
      await scene.driver.rescue({ deadWorkerIds: ['worker-1'], limit: 10 })
      scene.expect(await scene.record(job.lease.jobId)).toMatchObject({ pillar: 'dlq', inDoubt: true })
    },
  },
}
