/** The life of a worker as the storage knows it: one row, one beat, and rows it owns but does not know. */
import type { BeatVerdict } from '../../core/storage.ts'
import { complete, release, retry } from './actions.ts'
import type { CaseGroup } from './cases.ts'
import { minute, newJob, policy, second } from './new-job.ts'
import { operator, plain, type Scene } from './scene.ts'

const fast = policy({ fastStart: true })

async function beat(scene: Scene, workerId = 'worker-1'): Promise<BeatVerdict> {
  return scene.driver.heartbeat({ workerId, concurrency: 10, runningCount: 2, bufferedCount: 3 })
}

async function beatsOf(scene: Scene): Promise<Record<string, number>> {
  return Object.fromEntries((await scene.driver.readBeats()).map((row) => [row.workerId, row.beat]))
}

export const livenessCases: CaseGroup = {
  title: 'liveness',
  cases: {
    'a registered worker is seen with its identity': async (scene) => {
      const { expect, runtime } = scene
      await scene.worker('worker-2', { queues: ['a', 'b'], types: ['x.v1'], concurrency: 7, name: 'mailer' })
      const identity = { ...runtime.processes.self(), startTime: 'worker-2' }
      const beats = await scene.driver.readBeats()
      expect(beats.find((row) => row.workerId === 'worker-2')?.identity).toEqual(identity)
      const rows = await scene.inspector.workers()
      expect(rows.find((row) => row.id === 'worker-2')).toMatchObject({
        name: 'mailer',
        identity,
        queues: ['a', 'b'],
        types: ['x.v1'],
        concurrency: 7,
        runningCount: 0,
        bufferedCount: 0,
      })
    },

    'what cannot be read of an identity stays unknown': async (scene) => {
      const identity = { host: 'h', bootId: undefined, pidNamespace: undefined, pid: 7, startTime: undefined }
      await scene.worker('worker-2', { identity })
      const row = (await scene.driver.readBeats()).find(({ workerId }) => workerId === 'worker-2')
      scene.expect(row?.identity).toEqual(identity)
    },

    'every heartbeat moves the counter, and only that of its worker': async (scene) => {
      const { expect } = scene
      await scene.worker('worker-2')
      const before = await beatsOf(scene)
      expect(await beat(scene)).toMatchObject({ kind: 'alive', cancelRequested: [] })
      await beat(scene)
      const after = await beatsOf(scene)
      expect(after['worker-1']).toBeGreaterThan(before['worker-1'] ?? 0)
      expect(after['worker-2']).toBe(before['worker-2'])
      const row = (await scene.inspector.workers()).find(({ id }) => id === 'worker-1')
      expect(row).toMatchObject({ runningCount: 2, bufferedCount: 3, beat: after['worker-1'] })
    },

    'a worker whose row is gone is told so, and its heartbeat does not bring it back': async (scene) => {
      const { expect } = scene
      await scene.driver.retireWorker('worker-1')
      expect(await beat(scene)).toEqual({ kind: 'unknown' })
      expect(await beatsOf(scene)).toEqual({})
      await scene.worker('worker-1')
      expect(await beat(scene)).toMatchObject({ kind: 'alive', cancelRequested: [] })
    },

    'registering again is no error and keeps the counter rising': async (scene) => {
      const { expect } = scene
      await beat(scene)
      const before = (await beatsOf(scene))['worker-1'] ?? 0
      await scene.worker('worker-1', { concurrency: 3 })
      await beat(scene)
      expect((await beatsOf(scene))['worker-1']).not.toBe(before)
      expect(await scene.driver.readBeats()).toHaveLength(1)
    },

    'a cancel reaches the owner with its next beat, until it has settled': async (scene) => {
      const { expect } = scene
      const running = await scene.running()
      const other = await scene.running(plain, {}, { workerId: 'worker-2' })
      await scene.inspector.cancel(running.lease.jobId, operator)
      await scene.inspector.cancel(other.lease.jobId, operator)
      const told = { kind: 'alive', cancelRequested: [running.lease.jobId] }
      expect(await beat(scene)).toMatchObject(told)
      expect(await beat(scene)).toMatchObject(told)
      await scene.settle(running.lease, { kind: 'cancel', hold: false })
      expect(await beat(scene)).toMatchObject({ kind: 'alive', cancelRequested: [] })
    },

    'H26 a heartbeat keeps no job alive that another worker owns by now': async (scene) => {
      const { expect } = scene
      const stale = await scene.running()
      await scene.driver.rescue({ deadWorkerIds: ['worker-1'], limit: 10 })
      const current = await scene.fetchOne(plain, { workerId: 'worker-2' })
      const before = await scene.record(current.lease.jobId)
      await beat(scene)
      expect(await scene.record(stale.lease.jobId)).toEqual(before)
      await scene.worker('worker-3')
      const rescued = await scene.driver.rescue({ deadWorkerIds: ['worker-2'], limit: 10 })
      expect(rescued.map(({ jobId }) => jobId)).toEqual([stale.lease.jobId])
    },

    'retiring is no error for a worker that is gone already': async (scene) => {
      await scene.driver.retireWorker('worker-1')
      await scene.driver.retireWorker('worker-1')
      scene.expect(await scene.driver.readBeats()).toHaveLength(0)
    },

    'job types are saved and replaced': async (scene) => {
      const { expect } = scene
      const row = {
        type: 'mail.send.v1',
        queue: 'mail',
        keyed: true,
        keyScope: 'mail.send',
        allowRaw: false,
        answers: '{"sideEffects":"none"}',
        payloadSchema: null,
      }
      await scene.driver.saveJobTypes([row, { ...row, type: 'mail.check.v1', payloadSchema: '{"type":"object"}' }])
      await scene.driver.saveJobTypes([{ ...row, queue: 'post', keyed: false, allowRaw: true }])
      const rows = [...(await scene.inspector.jobTypes())].sort((a, b) => (a.type < b.type ? -1 : 1))
      expect(rows).toEqual([
        { ...row, type: 'mail.check.v1', payloadSchema: '{"type":"object"}' },
        { ...row, queue: 'post', keyed: false, allowRaw: true },
      ])
    },

    "a beat says whether anything in hot is the worker's": async (scene) => {
      const { expect } = scene
      await scene.insert(newJob(scene.runtime))
      expect(await beat(scene)).toMatchObject({ ownsJobs: false })
      const foreign = await scene.fetchOne(plain, { workerId: 'worker-2' })
      expect(await beat(scene)).toMatchObject({ ownsJobs: false })
      await scene.insert(newJob(scene.runtime))
      const own = await scene.fetchOne(plain)
      expect(await beat(scene)).toMatchObject({ ownsJobs: true })
      await scene.settle(own.lease, release)
      expect(await beat(scene)).toMatchObject({ ownsJobs: false })
      await scene.settle(foreign.lease, release)
    },

    'disown gives back what is not in hand, costs nothing, and leaves the rest alone': async (scene) => {
      const { expect, runtime } = scene
      await scene.insert(newJob(runtime), newJob(runtime), newJob(runtime))
      const [known, lost] = await scene.fetch([plain], { limit: 2 })
      const foreign = await scene.fetchOne(plain, { workerId: 'worker-2' })
      await scene.elapse(minute)
      const inHand = [known?.lease ?? foreign.lease]
      expect(await scene.disown(10 * second, inHand)).toBe(1)
      expect(await scene.record(lost?.lease.jobId ?? '')).toMatchObject({
        state: 'pending',
        attempt: 0,
        crashCount: 0,
        fetchCrashCount: 0,
        workerId: null,
      })
      expect(await scene.place(known?.lease.jobId ?? '')).toBe('fetched')
      expect(await scene.place(foreign.lease.jobId)).toBe('fetched')
      expect(await scene.disown(10 * second, inHand)).toBe(0)
    },

    'disown leaves a fetch alone that may still be on its way': async (scene) => {
      const job = await scene.fetched()
      await scene.elapse(5 * second)
      scene.expect(await scene.disown(10 * second)).toBe(0)
      scene.expect(await scene.place(job.lease.jobId)).toBe('fetched')
    },

    'a disown that is executed late leaves alone what was fetched after its beat': async (scene) => {
      const { expect } = scene
      const beatBefore = await beat(scene)
      const atMs = beatBefore.kind === 'alive' ? beatBefore.atMs : 0
      await scene.elapse(second)
      const job = await scene.fetched()
      await scene.elapse(minute)
      expect(await scene.driver.disown({ workerId: 'worker-1', inHand: [], fetchedBeforeMs: atMs })).toBe(0)
      expect(await scene.place(job.lease.jobId)).toBe('fetched')
    },

    'disown of a fast start gives the attempt back and makes no suspect': async (scene) => {
      const { expect } = scene
      await scene.add()
      await scene.fetchOne(fast)
      await scene.elapse(minute)
      expect(await scene.disown(second)).toBe(1)
      const again = await scene.fetchOne(fast)
      expect(again).toMatchObject({ state: 'processing', attempt: 1, crashCount: 0, suspect: false })
    },

    'H8 the owner of a disowned row is stale': async (scene) => {
      const { expect } = scene
      const job = await scene.fetched()
      await scene.elapse(minute)
      await scene.disown(second)
      expect(await scene.start(job.lease, plain)).toEqual({ kind: 'lost' })
      for (const action of [complete(), retry(), release]) {
        expect(await scene.settle(job.lease, action)).toEqual({ kind: 'lost' })
      }
      expect(await scene.place(job.lease.jobId)).toBe('pending')
    },

    'in hand means the lease, not the job: an older lease does not count': async (scene) => {
      const first = await scene.fetched()
      await scene.mustSettle(first.lease, release, 'released')
      const again = await scene.fetchOne(plain)
      await scene.elapse(minute)
      scene.expect(await scene.disown(second, [first.lease])).toBe(1)
      scene.expect(await scene.start(again.lease, plain)).toEqual({ kind: 'lost' })
    },
  },
}
