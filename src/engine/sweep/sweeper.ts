/**
 * What every worker does beside its jobs: finds dead workers and takes their jobs back, promotes what is due, deletes
 * what is past its retention. All of it is safe to do by many workers at once and to stop at any point.
 */
import type { WorkerConfig } from '../../core/config.ts'
import type { EventBus } from '../../core/events.ts'
import { describeFailure } from '../../core/failure.ts'
import type { Runtime, Timer } from '../../core/runtime.ts'
import type { StorageDriver } from '../../core/storage.ts'
import { withDeadline } from '../deadline.ts'
import { DeathWatch } from './death-watch.ts'

export interface SweeperParts {
  readonly driver: StorageDriver
  readonly runtime: Runtime
  readonly events: EventBus
  readonly config: WorkerConfig
  readonly workerId: () => string
  /** Jobs may have become ready. */
  readonly onReady: () => void
}

const rescueBatch = 500
const promoteBatch = 1_000
const pruneBatch = 1_000
/** A pass of retention every this many sweeps. */
const sweepsPerPrune = 12
const minPromoteDelayMs = 5
/** While nothing falls due, the look for it grows to this multiple of a poll, as the fetch does. */
const idlePromoteFactor = 2

export class Sweeper {
  readonly #parts: SweeperParts
  readonly #watch: DeathWatch
  #running = false
  #sweepCount = 0
  #sweepTimer: Timer | undefined
  #promoteTimer: Timer | undefined
  #current: Promise<void> = Promise.resolve()

  constructor(parts: SweeperParts) {
    this.#parts = parts
    this.#watch = new DeathWatch(parts.config)
  }

  start(): void {
    this.#running = true
    this.#armSweep()
    this.#armPromote(0)
  }

  /** Resolves when nothing of a pass is under way any more. */
  async stop(): Promise<void> {
    this.#running = false
    this.#sweepTimer?.cancel()
    this.#promoteTimer?.cancel()
    await this.#current
  }

  /** One pass: dead workers, their jobs, and now and then retention. Never rejects. */
  async sweep(): Promise<void> {
    try {
      await this.#rescueDead()
    } catch (error) {
      this.#watch.restart()
      this.#failed('rescue', error)
    }
    try {
      if (this.#sweepCount % sweepsPerPrune === 0) await this.#prune()
      this.#sweepCount += 1
    } catch (error) {
      this.#failed('prune', error)
    }
  }

  /** Makes due jobs pending; gives the milliseconds until the next one is due. Never rejects. */
  async promote(): Promise<number | undefined> {
    const { driver, events, onReady } = this.#parts
    try {
      for (;;) {
        const { promotedCount, nextDueInMs } = await this.#bounded('promote', driver.promote({ limit: promoteBatch }))
        if (promotedCount > 0) {
          events.emit({ name: 'sweep.promoted', promotedCount })
          onReady()
        }
        if (promotedCount < promoteBatch) return nextDueInMs
      }
    } catch (error) {
      this.#failed('promote', error)
      return undefined
    }
  }

  async #rescueDead(): Promise<void> {
    const { driver, runtime, events, workerId, onReady } = this.#parts
    const beats = await this.#bounded('readBeats', driver.readBeats())
    const me = workerId()
    const others = beats.filter((beat) => beat.workerId !== me)
    const silent = new Set(this.#watch.observe(others, runtime.clock.monotonicMs()))
    const gone = others.filter((beat) => !silent.has(beat.workerId) && runtime.processes.isGone(beat.identity))
    for (const id of silent) events.emit({ name: 'worker.declared_dead', workerId: id, by: me, how: 'silence' })
    for (const beat of gone) {
      events.emit({ name: 'worker.declared_dead', workerId: beat.workerId, by: me, how: 'process-gone' })
    }
    const provenDeadIds = gone.map((beat) => beat.workerId)
    const deadWorkerIds = [...silent, ...provenDeadIds]
    for (;;) {
      const rescued = await this.#bounded('rescue', driver.rescue({ deadWorkerIds, provenDeadIds, limit: rescueBatch }))
      for (const job of rescued) events.emit({ name: 'job.rescued', ...job })
      if (rescued.length > 0) onReady()
      if (rescued.length < rescueBatch) return
    }
  }

  async #prune(): Promise<void> {
    const { driver, config, events } = this.#parts
    const { archiveRetentionMs, dlqRetentionMs } = config
    for (;;) {
      const call = driver.prune({ limit: pruneBatch, archiveRetentionMs, dlqRetentionMs })
      const counts = await this.#bounded('prune', call)
      const { archivedCount, deadCount, markerCount, effectCount } = counts
      const total = archivedCount + deadCount + markerCount + effectCount
      if (total > 0) events.emit({ name: 'sweep.pruned', ...counts })
      const full = Math.max(archivedCount, deadCount, markerCount, effectCount) >= pruneBatch
      if (!full || !this.#running) return
    }
  }

  #bounded<T>(what: string, call: Promise<T>): Promise<T> {
    // Sweeps touch many rows; they get twice the time of a single call before the pass is given up.
    return withDeadline(this.#parts.runtime.scheduler, 2 * this.#parts.config.statementDeadlineMs, what, call)
  }

  #failed(during: string, error: unknown): void {
    this.#parts.events.emit({ name: 'storage.failed', during, failure: describeFailure(error) })
  }

  #armSweep(): void {
    const { runtime, config } = this.#parts
    // Jitter spreads the sweeps of many workers; on average it is the configured interval.
    const delayMs = config.sweepMs * (0.75 + 0.5 * runtime.random())
    this.#sweepTimer = runtime.scheduler.after(delayMs, () => {
      this.#current = this.#current.then(async () => {
        if (!this.#running) return
        await this.sweep()
        this.#armSweepAgain()
      })
    })
  }

  #armSweepAgain(): void {
    if (this.#running) this.#armSweep()
  }

  #armPromote(delayMs: number): void {
    const { runtime, config } = this.#parts
    this.#promoteTimer = runtime.scheduler.after(delayMs, () => {
      this.#current = this.#current.then(async () => {
        if (!this.#running) return
        const nextDueInMs = await this.promote()
        if (!this.#running) return
        // A job that another process schedules meanwhile is seen at the next look.
        const lookMs = config.pollMs * (nextDueInMs === undefined ? idlePromoteFactor : 1)
        this.#armPromote(Math.max(minPromoteDelayMs, Math.min(lookMs, nextDueInMs ?? lookMs)))
      })
    })
  }
}
