/** How to go each step of core/lifecycle.ts. */
import type { NewJob } from '../../core/job.ts'
import type { Place, Verb } from '../../core/lifecycle.ts'
import type { SettleAction, TypePolicy } from '../../core/storage.ts'
import { bury, cancel, complete, defer, release, retry, skip } from './actions.ts'
import { day, fingerprint, hour, keyedPolicy, keyOf, minute, newJob, policy, second } from './new-job.ts'
import { keyed, operator, plain, type Scene } from './scene.ts'

interface Prepared {
  readonly jobId: string
  readonly act: () => Promise<unknown>
}

interface Recipe {
  readonly verb: Verb
  readonly from: Place
  readonly to: Place
  readonly prepare: (scene: Scene) => Promise<Prepared>
}

const fast = policy({ fastStart: true })
const review = keyedPolicy({ whenInterrupted: 'review' })

type Owned = 'fetched' | 'processing'
interface OwnedOptions {
  readonly of?: TypePolicy
  readonly cancelled?: boolean
}

/** A job in a worker's hands, and its lease. */
async function owned(scene: Scene, from: Owned, { of = keyed, cancelled = false }: OwnedOptions = {}) {
  await scene.addKeyed('order-1', { type: of.type })
  const { lease } = await scene.fetchOne(of)
  if (from === 'processing') await scene.mustStart(lease, of)
  if (cancelled) await scene.inspector.cancel(lease.jobId, operator)
  return lease
}

/** A settle of an owned job. */
function settled(verb: Verb, from: Owned, to: Place, action: SettleAction, options: OwnedOptions = {}): Recipe {
  return {
    verb,
    from,
    to,
    async prepare(scene) {
      const lease = await owned(scene, from, options)
      return { jobId: lease.jobId, act: () => scene.settle(lease, action) }
    },
  }
}

function both(make: (from: Owned) => Recipe): readonly Recipe[] {
  return [make('fetched'), make('processing')]
}

function rescued(from: Owned, to: Place, options: OwnedOptions = {}): Recipe {
  return {
    verb: 'rescue',
    from,
    to,
    async prepare(scene) {
      const { jobId } = await owned(scene, from, options)
      return { jobId, act: () => scene.driver.rescue({ deadWorkerIds: ['worker-1'], limit: 10 }) }
    },
  }
}

function enqueued(to: Place, due: NewJob['due']): Recipe {
  return {
    verb: 'enqueue',
    from: 'nowhere',
    to,
    async prepare(scene) {
      const job = newJob(scene.runtime, { due })
      return { jobId: job.id, act: () => scene.insert(job) }
    },
  }
}

function fetched(to: Owned, of: TypePolicy): Recipe {
  return {
    verb: 'fetch',
    from: 'pending',
    to,
    async prepare(scene) {
      const { id } = await scene.add({ type: of.type })
      return { jobId: id, act: () => scene.fetchOne(of) }
    },
  }
}

function cancelledWhileWaiting(from: Place, due: NewJob['due']): Recipe {
  return {
    verb: 'cancel',
    from,
    to: 'archive',
    async prepare(scene) {
      const { id } = await scene.addKeyed('order-1', { due })
      return { jobId: id, act: () => scene.inspector.cancel(id, operator) }
    },
  }
}

async function dead(scene: Scene): Promise<string> {
  const lease = await owned(scene, 'processing')
  await scene.mustSettle(lease, bury(), 'dead')
  return lease.jobId
}

const settles: readonly Recipe[] = [
  settled('complete', 'processing', 'archive', complete()),
  {
    verb: 'complete',
    from: 'processing',
    to: 'dlq',
    async prepare(scene) {
      const lease = await owned(scene, 'processing')
      await scene.plantMarker(keyOf(scene.runtime, 'order-1').hash)
      return { jobId: lease.jobId, act: () => scene.settle(lease, complete()) }
    },
  },
  ...both((from) => settled('retry', from, 'scheduled', retry({ delayMs: minute }))),
  ...both((from) => settled('retry', from, 'pending', retry({ charge: 'nothing', reason: 'storage' }))),
  ...both((from) => settled('bury', from, 'dlq', bury())),
  ...both((from) => settled('refuse', from, 'dlq', bury({ reason: 'Rejected' }))),
  ...both((from) => settled('skip', from, 'archive', skip('01890000-0000-7000-8000-000000000000'))),
  ...both((from) => settled('defer', from, 'scheduled', defer())),
  ...both((from) => settled('release', from, 'pending', release)),
  ...both((from) => settled('cancel', from, 'archive', cancel())),
  ...both((from) => settled('cancel', from, 'dlq', cancel(true), { of: review })),
]

/** Steps whose counters are those of the cancel they become. */
const cancellations: readonly Recipe[] = [
  ...both((from) => settled('retry', from, 'archive', retry({ delayMs: minute }), { cancelled: true })),
  settled('retry', 'processing', 'dlq', retry({ delayMs: minute }), { of: review, cancelled: true }),
  cancelledWhileWaiting('scheduled', { kind: 'in', delayMs: hour }),
  cancelledWhileWaiting('pending', { kind: 'now' }),
]

const rescues: readonly Recipe[] = [
  ...both((from) => rescued(from, 'pending')),
  ...both((from) => rescued(from, 'archive', { cancelled: true })),
  rescued('fetched', 'dlq', { of: keyedPolicy({ fetchCrashBudget: 0 }) }),
  rescued('processing', 'dlq', { of: review }),
  ...both((from) => ({
    verb: 'disown',
    from,
    to: 'pending',
    async prepare(scene) {
      const of = from === 'processing' ? fast : plain
      await scene.add()
      const { lease } = await scene.fetchOne(of)
      await scene.elapse(minute)
      return { jobId: lease.jobId, act: () => scene.disown(second) }
    },
  })),
]

const others: readonly Recipe[] = [
  enqueued('scheduled', { kind: 'in', delayMs: hour }),
  enqueued('pending', { kind: 'now' }),
  {
    verb: 'promote',
    from: 'scheduled',
    to: 'pending',
    async prepare(scene) {
      const { id } = await scene.add({ due: { kind: 'in', delayMs: second } })
      await scene.elapse(minute)
      return { jobId: id, act: () => scene.driver.promote({ limit: 10 }) }
    },
  },
  fetched('fetched', plain),
  fetched('processing', fast),
  {
    verb: 'claim',
    from: 'fetched',
    to: 'fetched',
    async prepare(scene) {
      const { lease } = await scene.fetched(keyed)
      const key = keyOf(scene.runtime, 'order-1')
      const claim = { lease, key, fingerprint: fingerprint(scene.runtime, 1) }
      return { jobId: lease.jobId, act: () => scene.driver.claim([claim]) }
    },
  },
  {
    verb: 'start',
    from: 'fetched',
    to: 'processing',
    async prepare(scene) {
      const lease = await owned(scene, 'fetched')
      return { jobId: lease.jobId, act: () => scene.start(lease, keyed) }
    },
  },
  {
    verb: 'resurrect',
    from: 'dlq',
    to: 'pending',
    async prepare(scene) {
      const jobId = await dead(scene)
      return { jobId, act: () => scene.resurrect(jobId) }
    },
  },
  {
    verb: 'purge',
    from: 'dlq',
    to: 'nowhere',
    async prepare(scene) {
      const jobId = await dead(scene)
      return { jobId, act: () => scene.inspector.purge({ jobIds: [jobId], limit: 1 }, operator) }
    },
  },
  {
    verb: 'purge',
    from: 'archive',
    to: 'nowhere',
    async prepare(scene) {
      const lease = await owned(scene, 'processing')
      await scene.mustSettle(lease, complete(), 'completed')
      await scene.elapse(2 * day)
      const limits = { limit: 10, archiveRetentionMs: day, dlqRetentionMs: day }
      return { jobId: lease.jobId, act: () => scene.driver.prune(limits) }
    },
  },
]

export const recipes: readonly Recipe[] = [...settles, ...cancellations, ...rescues, ...others]
