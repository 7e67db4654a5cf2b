// Racing clients: several connections enqueue, fetch, claim, start, settle, die, are rescued and settle once more when
// they are long dead. However it goes, no key completes twice, no job is lost, and nobody sees a deadlock.
// CHOKAQ_RACE_MS=60000 (npm run proof:races) is the length the design speaks of.
import { afterAll, describe, expect, it } from 'vitest'
import type { FetchedJob } from '../../src/core/job.ts'
import type { SettleVerdict, StorageDriver } from '../../src/core/storage.ts'
import { complete, release, retry, skip } from '../../src/testing/conformance/actions.ts'
import { fingerprint, keyedJob, keyedPolicy, keyOf, newJob } from '../../src/testing/conformance/new-job.ts'
import { createDatabase, keepOnFailure } from './database.ts'
import { open, patient, register, runtime } from './scene.ts'

const raceMs = Number(process.env.CHOKAQ_RACE_MS ?? 4_000)
const database = await createDatabase()
afterAll(() => database.drop())

/** Keys come from a window that moves on, so that there are always some that nobody has completed yet. */
const windowSize = 200
const keysPerMs = 0.4
const fastKeyed = keyedPolicy({ fastStart: true, crashBudget: 1_000, fetchCrashBudget: 1_000 })
const gated = keyedPolicy({ type: 'payment.gated.v1', crashBudget: 1_000, fetchCrashBudget: 1_000 })
const policies = [fastKeyed, gated]
const says = { amount: 1 }

const chance = (share: number): boolean => runtime.random() < share

class Race {
  readonly #startMs = runtime.clock.monotonicMs()
  readonly keyOfJob = new Map<string, string>()
  readonly completed = new Map<string, string[]>()
  readonly stale: { readonly job: FetchedJob; readonly driver: StorageDriver }[] = []
  inserted = 0
  conflicts = 0
  #workers = 0

  get isOver(): boolean {
    return runtime.clock.monotonicMs() - this.#startMs > raceMs
  }

  #anyKey(): string {
    const passed = (runtime.clock.monotonicMs() - this.#startMs) * keysPerMs
    return `key-${Math.floor(passed + runtime.random() * windowSize)}`
  }

  /** Keyed by the producer or, raw, by the worker. */
  async produce(driver: StorageDriver): Promise<void> {
    while (!this.isOver) {
      const jobs = Array.from({ length: 1 + Math.floor(runtime.random() * 20) }, () => {
        const key = this.#anyKey()
        const type = chance(0.5) ? fastKeyed.type : gated.type
        const job = chance(0.3)
          ? newJob(runtime, { type, payload: JSON.stringify(says) })
          : keyedJob(runtime, key, { type, says, mayExist: chance(0.2) })
        this.keyOfJob.set(job.id, key)
        return job
      })
      const verdicts = await driver.enqueue(jobs)
      this.inserted += verdicts.filter(({ kind }) => kind === 'inserted').length
      expect(verdicts.filter(({ kind }) => kind === 'refused' || kind === 'id-reused')).toEqual([])
    }
  }

  /** A worker that now and then dies with all it has; a new one takes its place. */
  async work(driver: StorageDriver, untilEmpty = false): Promise<void> {
    let workerId = await this.#hire(driver)
    for (;;) {
      const limit = 1 + Math.floor(runtime.random() * 20)
      const jobs = await driver.fetch({ workerId, queue: 'default', limit, policies })
      if (jobs.length === 0 && (untilEmpty || this.isOver)) return
      const running = await this.#start(driver, jobs)
      if (!untilEmpty && chance(0.1)) {
        this.stale.push(...running.map((job) => ({ job, driver })))
        const deadWorkerIds = [workerId]
        workerId = await this.#hire(driver)
        await driver.rescue({ deadWorkerIds, limit: 1_000 })
        continue
      }
      await this.#settle(driver, running, untilEmpty)
    }
  }

  /** The dead still believe in their leases. */
  async haunt(): Promise<void> {
    while (!this.isOver) {
      const ghost = this.stale.shift()
      if (ghost === undefined) await new Promise<void>((resolve) => void setImmediate(resolve))
      else await this.#settle(ghost.driver, [ghost.job], false)
    }
  }

  async #hire(driver: StorageDriver): Promise<string> {
    this.#workers += 1
    const id = `w-${this.#workers}`
    await register(driver, id)
    return id
  }

  async #start(driver: StorageDriver, jobs: readonly FetchedJob[]): Promise<readonly FetchedJob[]> {
    const running = jobs.filter(({ state }) => state === 'processing')
    const waiting = jobs.filter(({ state }) => state === 'fetched')
    const raw = waiting.filter(({ key }) => key === undefined)
    const claims = await driver.claim(
      raw.map(({ lease }) => ({
        lease,
        key: keyOf(runtime, this.keyOfJob.get(lease.jobId) ?? ''),
        fingerprint: fingerprint(runtime, says),
      })),
    )
    const held = raw.filter((_, n) => claims[n]?.kind === 'held')
    await driver.settle(held.map(({ lease }) => ({ lease, action: skip(runtime.newId(), { holder: 'in-progress' }) })))
    const starting = waiting.filter((job) => !held.includes(job))
    const policy = (job: FetchedJob) => policies.find(({ type }) => type === job.type) ?? gated
    const verdicts = await driver.start(starting.map((job) => ({ lease: job.lease, policy: policy(job) })))
    const duplicates = starting.filter((_, n) => verdicts[n]?.kind === 'duplicate')
    await driver.settle(duplicates.map(({ lease }) => ({ lease, action: skip(runtime.newId()) })))
    return [...running, ...starting.filter((_, n) => verdicts[n]?.kind === 'started')]
  }

  async #settle(driver: StorageDriver, jobs: readonly FetchedJob[], isFinal: boolean): Promise<void> {
    const settlements = jobs.map(({ lease }) => ({
      lease,
      action: isFinal || chance(0.8) ? complete() : chance(0.5) ? retry() : release,
    }))
    const verdicts = await driver.settle(settlements)
    verdicts.forEach((verdict, n) => this.#note(jobs[n], verdict))
  }

  #note(job: FetchedJob | undefined, verdict: SettleVerdict): void {
    expect(verdict.kind).not.toBe('refused')
    if (job === undefined || verdict.kind !== 'settled' || verdict.repeated) return
    if (verdict.outcome === 'conflict') this.conflicts += 1
    if (verdict.outcome !== 'completed') return
    const key = this.keyOfJob.get(job.lease.jobId) ?? ''
    this.completed.set(key, [...(this.completed.get(key) ?? []), job.lease.jobId])
  }
}

describe('racing clients', () => {
  it(
    `for ${raceMs} ms complete no key twice and lose no job`,
    async () => {
      keepOnFailure(database)
      const race = new Race()
      // A lock that a busy machine gives late is no refusal; a deadlock is found long before.
      const drivers = Array.from({ length: 3 }, () => open(database.url, patient))
      const [a, b, c] = drivers as [StorageDriver, StorageDriver, StorageDriver]
      await Promise.all(drivers.map((driver) => driver.ready()))
      await Promise.all([race.produce(a), race.produce(b), race.work(a), race.work(b), race.work(c), race.haunt()])
      await a.rescue({ deadWorkerIds: (await a.readBeats()).map(({ workerId }) => workerId), limit: 10_000 })
      await race.work(c, true)
      const twice = [...race.completed].filter(([, ids]) => ids.length > 1)
      expect(twice).toEqual([])
      expect(race.conflicts).toBe(0)
      const [counts] = await database.query<Record<string, string>>(`SELECT
        (SELECT count(*) FROM chokaq.jobs_hot) AS hot, (SELECT count(*) FROM chokaq.jobs_dlq) AS dlq,
        (SELECT count(*) FROM chokaq.jobs_archive) AS archive,
        (SELECT count(*) FROM chokaq.jobs_archive WHERE outcome = 'completed') AS completed,
        (SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()) AS deadlocks`)
      expect(counts).toMatchObject({ hot: '0', dlq: '0', archive: String(race.inserted) })
      expect(Number(counts?.completed)).toBe(race.completed.size)
      const stats = await a.inspector.stats()
      const total = (name: string): number =>
        stats.filter((row) => row.name === name).reduce((sum, { value }) => sum + value, 0)
      expect([total('jobs.enqueued'), total('jobs.completed')]).toEqual([race.inserted, race.completed.size])
      expect(race.completed.size).toBeGreaterThan(raceMs / 100)
      if (process.env.CHOKAQ_RACE_MS !== undefined)
        process.stderr.write(
          `${race.completed.size} keys completed, ${race.inserted} jobs, deadlocks ${counts?.deadlocks}\n`,
        )
      await Promise.all(drivers.map((driver) => driver.close()))
    },
    raceMs + 60_000,
  )
})
