/** The claim of a key that the worker computed: it is the key on the hot row, and there is one such row per key (R1). */
import type { FetchedJob } from '../../core/job.ts'
import type { ClaimRequest } from '../../core/storage.ts'
import { complete, defer, release } from './actions.ts'
import type { CaseGroup } from './cases.ts'
import { day, fingerprint, keyedJob, keyOf, newJob } from './new-job.ts'
import { keyed, type Scene } from './scene.ts'

const says = { amount: 1 }

/** Raw jobs of the keyed type, fetched. */
async function rawFetched(scene: Scene, count: number): Promise<FetchedJob[]> {
  await scene.insert(...Array.from({ length: count }, () => newJob(scene.runtime, { type: keyed.type })))
  const jobs = await scene.fetch([keyed])
  scene.expect(jobs).toHaveLength(count)
  return [...jobs]
}

async function oneRaw(scene: Scene): Promise<FetchedJob> {
  const [job] = await rawFetched(scene, 1)
  return job as FetchedJob
}

function claimOf(scene: Scene, job: FetchedJob, key: string, value: unknown = says): ClaimRequest {
  return { lease: job.lease, key: keyOf(scene.runtime, key), fingerprint: fingerprint(scene.runtime, value) }
}

export const claimCases: CaseGroup = {
  title: 'claim',
  cases: {
    'a free key is claimed and stands on the row': async (scene) => {
      const job = await oneRaw(scene)
      scene.expect(await scene.driver.claim([claimOf(scene, job, 'order-1')])).toEqual([{ kind: 'claimed' }])
      scene.expect(await scene.record(job.lease.jobId)).toMatchObject({
        state: 'fetched',
        keyHash: keyOf(scene.runtime, 'order-1').hash,
        keyPrefix: 'order-1',
        keyScope: 'payment.capture',
        fingerprint: fingerprint(scene.runtime, says),
        attempt: 0,
      })
    },

    'R1 a claimed key deduplicates what is enqueued from then on': async (scene) => {
      const job = await oneRaw(scene)
      await scene.driver.claim([claimOf(scene, job, 'order-1')])
      const verdict = await scene.send({
        ...newJob(scene.runtime, { type: keyed.type }),
        key: keyOf(scene.runtime, 'order-1'),
        fingerprint: fingerprint(scene.runtime, says),
      })
      scene.expect(verdict).toEqual({ kind: 'active', jobId: job.lease.jobId, state: 'fetched' })
    },

    'a key that an active job has is held, and the row keeps no key': async (scene) => {
      const holder = await scene.addKeyed('order-1', { due: { kind: 'in', delayMs: 60_000 } })
      const job = await oneRaw(scene)
      scene
        .expect(await scene.driver.claim([claimOf(scene, job, 'order-1')]))
        .toEqual([{ kind: 'held', jobId: holder.id, sameFingerprint: true }])
      scene.expect(await scene.record(job.lease.jobId)).toMatchObject({ state: 'fetched', keyHash: null })
    },

    'H19 a holder with another fingerprint is told apart': async (scene) => {
      const holder = await scene.addKeyed('order-1', { due: { kind: 'in', delayMs: 60_000 } })
      const job = await oneRaw(scene)
      scene
        .expect(await scene.driver.claim([claimOf(scene, job, 'order-1', { amount: 2 })]))
        .toEqual([{ kind: 'held', jobId: holder.id, sameFingerprint: false }])
    },

    'a fingerprint of another version does not accuse': async (scene) => {
      const holder = await scene.addKeyed('order-1', { due: { kind: 'in', delayMs: 60_000 } })
      const job = await oneRaw(scene)
      const request = { ...claimOf(scene, job, 'order-1'), fingerprint: '0:unknown' }
      scene
        .expect(await scene.driver.claim([request]))
        .toEqual([{ kind: 'held', jobId: holder.id, sameFingerprint: true }])
    },

    'R1 of two claims of one key in one batch exactly one wins': async (scene) => {
      const [a, b, c] = (await rawFetched(scene, 3)) as [FetchedJob, FetchedJob, FetchedJob]
      const requests = [claimOf(scene, a, 'order-1'), claimOf(scene, b, 'order-1'), claimOf(scene, c, 'order-2')]
      const kinds = (await scene.driver.claim(requests)).map((verdict) => verdict.kind)
      scene.expect([...kinds.slice(0, 2)].sort()).toEqual(['claimed', 'held'])
      scene.expect(kinds[2]).toBe('claimed')
      const keys = (await scene.all('hot')).map((record) => record.keyHash)
      scene.expect(keys.filter((hash) => hash === keyOf(scene.runtime, 'order-1').hash)).toHaveLength(1)
    },

    'a claim repeated after a lost reply is still the own one': async (scene) => {
      const job = await oneRaw(scene)
      const request = claimOf(scene, job, 'order-1')
      await scene.driver.claim([request])
      scene.expect(await scene.driver.claim([request])).toEqual([{ kind: 'claimed' }])
    },

    'H8 a stale owner cannot claim': async (scene) => {
      const job = await oneRaw(scene)
      await scene.driver.rescue({ deadWorkerIds: ['worker-1'], limit: 10 })
      scene.expect(await scene.driver.claim([claimOf(scene, job, 'order-1')])).toEqual([{ kind: 'lost' }])
      scene.expect(await scene.record(job.lease.jobId)).toMatchObject({ state: 'pending', keyHash: null })
    },

    'a lease that never was, is lost': async (scene) => {
      const job = await oneRaw(scene)
      const forged = { ...claimOf(scene, job, 'order-1'), lease: { ...job.lease, token: job.lease.token + 1000 } }
      const unknown = { ...forged, lease: { jobId: scene.runtime.newId(), token: job.lease.token } }
      scene.expect(await scene.driver.claim([forged, unknown])).toEqual([{ kind: 'lost' }, { kind: 'lost' }])
    },

    'a lost claim costs its neighbours nothing': async (scene) => {
      const [a, b] = (await rawFetched(scene, 2)) as [FetchedJob, FetchedJob]
      const stale = { ...claimOf(scene, a, 'order-1'), lease: { ...a.lease, token: a.lease.token + 1000 } }
      scene
        .expect(await scene.driver.claim([stale, claimOf(scene, b, 'order-2')]))
        .toEqual([{ kind: 'lost' }, { kind: 'claimed' }])
      scene.expect(await scene.driver.claim([])).toEqual([])
    },

    'R3 a claim does not look at the marker: start does': async (scene) => {
      await scene.plantMarker(keyOf(scene.runtime, 'order-1').hash)
      const job = await oneRaw(scene)
      scene.expect(await scene.driver.claim([claimOf(scene, job, 'order-1')])).toEqual([{ kind: 'claimed' }])
      scene.expect((await scene.start(job.lease, keyed)).kind).toBe('duplicate')
    },

    'a keyed job that has no key yet never starts': async (scene) => {
      const job = await oneRaw(scene)
      const kind = await scene.start(job.lease, keyed).then(
        (verdict) => verdict.kind as string,
        () => 'rejected',
      )
      scene.expect(kind).not.toBe('started')
      scene.expect(await scene.record(job.lease.jobId)).toMatchObject({ state: 'fetched', attempt: 0 })
    },

    'H7 a claim has no timer: it holds for as long as its job runs': async (scene) => {
      const job = await scene.runningKeyed('order-1')
      await scene.elapse(400 * day)
      const { jobId } = job.lease
      const duplicate = keyedJob(scene.runtime, 'order-1')
      scene.expect(await scene.send(duplicate)).toEqual({ kind: 'active', jobId, state: 'processing' })
      await scene.mustSettle(job.lease, complete(), 'completed')
    },

    'a claimed key ends with the job like any other': async (scene) => {
      const job = await oneRaw(scene)
      await scene.driver.claim([claimOf(scene, job, 'order-1')])
      await scene.mustStart(job.lease, keyed)
      await scene.mustSettle(job.lease, complete(), 'completed')
      scene
        .expect(await scene.marker(keyOf(scene.runtime, 'order-1').hash))
        .toMatchObject({ state: 'completed', jobId: job.lease.jobId, fingerprint: fingerprint(scene.runtime, says) })
    },

    'a deferred job gives the key it computed back': async (scene) => {
      const [a, b] = (await rawFetched(scene, 2)) as [FetchedJob, FetchedJob]
      await scene.driver.claim([claimOf(scene, a, 'order-1')])
      await scene.mustSettle(a.lease, defer(), 'deferred')
      scene.expect((await scene.record(a.lease.jobId)).keyHash).toBe(null)
      scene.expect(await scene.driver.claim([claimOf(scene, b, 'order-1')])).toEqual([{ kind: 'claimed' }])
    },

    'a released row may be claimed again by its next owner': async (scene) => {
      const job = await oneRaw(scene)
      await scene.driver.claim([claimOf(scene, job, 'order-1')])
      await scene.mustSettle(job.lease, release, 'released')
      const again = await scene.fetchOne(keyed)
      if (again.key === undefined) await scene.driver.claim([claimOf(scene, again, 'order-1')])
      await scene.mustStart(again.lease, keyed)
      scene.expect((await scene.record(job.lease.jobId)).keyPrefix).toBe('order-1')
    },
  },
}
