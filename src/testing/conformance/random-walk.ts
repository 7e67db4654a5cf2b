/**
 * A random walk over everything a storage can do, from a seed. It keeps no model of the storage: what it checks after
 * the walk is that the storage agrees with itself (I21), whatever happened on the way.
 */
import type { FetchedJob } from '../../core/job.ts'
import type { SettleAction, TypePolicy } from '../../core/storage.ts'
import { boom, cancel, complete, defer, release, retry, skip } from './actions.ts'
import { day, hour, keyedJob, keyedPolicy, minute, newJob, policy, second } from './new-job.ts'
import { operator, type Scene } from './scene.ts'

const policies: readonly TypePolicy[] = [
  policy({ fastStart: true, crashBudget: 1 }),
  policy({ type: 'report.build.v1', fetchCrashBudget: 1 }),
  keyedPolicy({ fastStart: true }),
  keyedPolicy({ type: 'payment.refund.v1', whenInterrupted: 'review' }),
]
const workers = ['worker-1', 'worker-2'] as const
const queues = ['default', 'other'] as const

export interface WalkOptions {
  /** Pruning deletes history, after which outcomes can no longer be counted by hand. */
  readonly prunes: boolean
}

export class RandomWalk {
  readonly #scene: Scene
  readonly #prunes: boolean
  /** Leases that were given out, many of them stale by now. */
  readonly #leases: FetchedJob[] = []
  readonly #ids: string[] = []

  constructor(scene: Scene, options: WalkOptions) {
    this.#scene = scene
    this.#prunes = options.prunes
  }

  async run(steps: number): Promise<void> {
    const { chance } = this.#scene.runtime
    const acts = [
      ...Array<() => Promise<unknown>>(5).fill(() => this.#enqueue()),
      ...Array<() => Promise<unknown>>(5).fill(() => this.#fetchAndStart()),
      ...Array<() => Promise<unknown>>(7).fill(() => this.#settle()),
      () => this.#elapse(),
      () => this.#crash(),
      () => this.#disown(),
      () => this.#cancel(),
      () => this.#bringBack(),
      () => this.#clean(),
    ]
    for (let step = 0; step < steps; step += 1) await chance.pick(acts)()
  }

  async #enqueue(): Promise<void> {
    const { driver, runtime } = this.#scene
    const { chance } = runtime
    const jobs = Array.from({ length: chance.int(1, 3) }, () => {
      const shared = {
        queue: chance.pick(queues),
        priority: chance.int(-2, 2),
        due: chance.chance(0.3) ? ({ kind: 'in', delayMs: chance.int(0, hour) } as const) : ({ kind: 'now' } as const),
      }
      const type = chance.pick(policies)
      if (!type.keyed) return newJob(runtime, { ...shared, type: type.type })
      const says = { amount: chance.int(1, 2) }
      return keyedJob(runtime, `order-${chance.int(1, 6)}`, { ...shared, type: type.type, says })
    })
    await driver.enqueue(jobs)
    this.#ids.push(...jobs.map(({ id }) => id))
    if (chance.chance(0.2)) await driver.enqueue(jobs.map((job) => ({ ...job, mayExist: true })))
  }

  async #fetchAndStart(): Promise<void> {
    const { driver, runtime } = this.#scene
    const { chance } = runtime
    const queue = chance.pick(queues)
    const jobs = await this.#scene.fetch(policies, { workerId: chance.pick(workers), queue, limit: chance.int(1, 4) })
    this.#leases.push(...jobs)
    const starting = jobs.filter((job) => job.state === 'fetched' && chance.chance(0.8))
    const policyOf = (job: FetchedJob): TypePolicy => policies.find(({ type }) => type === job.type) ?? policy()
    const requests = starting.map((job) => ({ lease: job.lease, policy: policyOf(job) }))
    const verdicts = await driver.start(requests)
    const duplicates = verdicts.flatMap((verdict, n) => {
      const lease = requests[n]?.lease
      if (verdict.kind !== 'duplicate' || lease === undefined) return []
      return [{ lease, action: skip(verdict.jobId, { holder: verdict.holder, result: verdict.result }) }]
    })
    await driver.settle(duplicates)
  }

  async #settle(): Promise<void> {
    const { driver, runtime } = this.#scene
    const { chance } = runtime
    if (this.#leases.length === 0) return
    const jobs = Array.from({ length: chance.int(1, 4) }, () => chance.pick(this.#leases))
    await driver.settle(jobs.map(({ lease }) => ({ lease, action: this.#action() })))
  }

  #action(): SettleAction {
    const { runtime } = this.#scene
    const { chance } = runtime
    const child = newJob(runtime, { queue: chance.pick(queues) })
    const keyedChild = keyedJob(runtime, `order-${chance.int(1, 6)}`)
    return chance.pick<() => SettleAction>([
      () => complete({ markerLifeMs: chance.pick([minute, 60 * day]) }),
      () => complete({ children: [child, keyedChild] }),
      () => complete({ keep: { kind: 'stub', forMs: hour } }),
      () => retry({ delayMs: chance.pick([0, minute]) }),
      () => retry({ charge: 'nothing', reason: 'retry-after', delayMs: minute }),
      () => ({ kind: 'bury', reason: 'FatalError', failure: boom, hold: chance.chance(0.3) }),
      () => defer(second),
      () => cancel(chance.chance(0.2)),
      () => release,
    ])()
  }

  async #elapse(): Promise<void> {
    await this.#scene.elapse(this.#scene.runtime.chance.pick([second, minute, hour]))
    await this.#scene.driver.promote({ limit: 5 })
  }

  async #crash(): Promise<void> {
    const dead = this.#scene.runtime.chance.pick(workers)
    await this.#scene.driver.rescue({ deadWorkerIds: [dead], limit: 3 })
    await this.#scene.worker(dead)
  }

  async #disown(): Promise<void> {
    const { runtime } = this.#scene
    const inHand = runtime.chance.shuffle(this.#leases.map(({ lease }) => lease)).slice(0, 10)
    await this.#scene.disown(second, inHand, runtime.chance.pick(workers))
  }

  async #cancel(): Promise<void> {
    const { inspector, runtime } = this.#scene
    if (this.#ids.length === 0) return
    const id = runtime.chance.pick(this.#ids)
    if (runtime.chance.chance(0.5)) await inspector.cancel(id, operator)
    else await inspector.retryNow(id, operator)
  }

  async #bringBack(): Promise<void> {
    const { runtime } = this.#scene
    const dead = await this.#scene.all('dlq')
    if (dead.length === 0) return
    const mode = runtime.chance.pick(['continue', 'new-operation'] as const)
    await this.#scene.resurrect(runtime.chance.pick(dead).id, { mode })
  }

  async #clean(): Promise<void> {
    const { driver, inspector, runtime } = this.#scene
    if (runtime.chance.chance(0.5)) await inspector.purge({ filter: { queue: 'other' }, limit: 2 }, operator)
    if (!this.#prunes) return
    await driver.prune({ limit: 4, archiveRetentionMs: hour, dlqRetentionMs: hour })
  }
}
