/**
 * The worker's liveness. Every H it raises its beat in the database, hears which of its jobs are to be cancelled, and
 * disowns rows whose fetch reply was lost.
 *
 * Invariant: a worker acts on its leases only while its last *confirmed* beat, counted from when it was sent, is younger
 * than F by its own monotonic clock. Others declare it dead no sooner than D > F after they saw the beat stand still, so
 * it has always stopped first. A watch beside the beats checks this even while a beat hangs, and right after the event
 * loop or the machine was asleep.
 */
import type { WorkerConfig } from '../../core/config.ts'
import type { EventBus } from '../../core/events.ts'
import { describeFailure } from '../../core/failure.ts'
import type { Lease } from '../../core/lease.ts'
import type { Runtime, Timer } from '../../core/runtime.ts'
import type { StorageDriver } from '../../core/storage.ts'
import { withDeadline } from '../deadline.ts'

export interface HeartParts {
  readonly driver: StorageDriver
  readonly runtime: Runtime
  readonly events: EventBus
  readonly config: WorkerConfig
  readonly workerId: string
  readonly load: () => { readonly concurrency: number; readonly runningCount: number; readonly bufferedCount: number }
  readonly inHand: () => readonly Lease[]
  readonly onCancel: (jobIds: readonly string[]) => void
  /** Called once: every lease of this incarnation is lost or must be treated so. */
  readonly onFence: (why: 'beats-failed' | 'declared-dead') => void
}

const watchesPerBeat = 5

export class Heart {
  readonly #parts: HeartParts
  #confirmedMs: number
  #beating = false
  #stopped = false
  #beatTimer: Timer | undefined
  #watchTimer: Timer | undefined
  #watchedMs: number
  #current: Promise<void> = Promise.resolve()

  constructor(parts: HeartParts) {
    this.#parts = parts
    this.#confirmedMs = parts.runtime.clock.monotonicMs()
    this.#watchedMs = this.#confirmedMs
  }

  /** The worker's row is in the database since a call that was sent then: the first confirmed beat. */
  registered(sentMs: number): void {
    this.#confirmedMs = sentMs
  }

  start(): void {
    this.#watchedMs = this.#parts.runtime.clock.monotonicMs()
    this.#armBeat()
    this.#armWatch()
  }

  stop(): void {
    this.#stopped = true
    this.#beatTimer?.cancel()
    this.#watchTimer?.cancel()
  }

  /** True while this incarnation may still act on its leases. */
  get confirmed(): boolean {
    return !this.#stopped && this.#sinceBeatMs() < this.#parts.config.fenceAfterMs
  }

  /** Since the last confirmed beat was sent. */
  get sinceBeatMs(): number {
    return this.#sinceBeatMs()
  }

  /** Resolves when no beat is under way any more. */
  quiet(): Promise<void> {
    return this.#current
  }

  /** One beat now. Never rejects. */
  beat(): Promise<void> {
    if (this.#beating || this.#stopped) return Promise.resolve()
    this.#beating = true
    this.#current = this.#beatOnce()
    return this.#current
  }

  async #beatOnce(): Promise<void> {
    const { driver, runtime, config, workerId, load, events } = this.#parts
    const sentMs = runtime.clock.monotonicMs()
    try {
      const call = driver.heartbeat({ workerId, ...load() })
      const verdict = await withDeadline(runtime.scheduler, config.statementDeadlineMs, 'heartbeat', call)
      if (this.#hasStopped()) return
      if (verdict.kind === 'unknown') {
        this.#fence('declared-dead')
        return
      }
      this.#confirmedMs = sentMs
      if (verdict.cancelRequested.length > 0) this.#parts.onCancel(verdict.cancelRequested)
      if (verdict.ownsJobs && !this.#hasStopped()) await this.#disown(verdict.atMs)
    } catch (error) {
      const sinceBeatMs = Math.round(this.#sinceBeatMs())
      events.emit({ name: 'worker.beat_failed', workerId, failure: describeFailure(error), sinceBeatMs })
    } finally {
      this.#beating = false
    }
  }

  /**
   * A fetch that was executed two statement deadlines before this beat has delivered its reply or lost it. The bound is
   * the beat's own time: a disown that is itself executed late must not reach rows that were fetched since.
   */
  async #disown(beatAtMs: number): Promise<void> {
    const { driver, runtime, config, workerId, inHand, events } = this.#parts
    const fetchedBeforeMs = beatAtMs - 2 * config.statementDeadlineMs
    const call = driver.disown({ workerId, inHand: inHand(), fetchedBeforeMs })
    const disownedCount = await withDeadline(runtime.scheduler, config.statementDeadlineMs, 'disown', call)
    if (disownedCount > 0) events.emit({ name: 'worker.disowned', workerId, disownedCount })
  }

  #armBeat(): void {
    this.#beatTimer = this.#parts.runtime.scheduler.after(this.#parts.config.heartbeatMs, () => {
      this.#armBeat()
      void this.beat()
    })
  }

  #armWatch(): void {
    const everyMs = Math.max(1, this.#parts.config.heartbeatMs / watchesPerBeat)
    this.#watchTimer = this.#parts.runtime.scheduler.after(everyMs, () => {
      this.#watch(everyMs)
      if (!this.#stopped) this.#armWatch()
    })
  }

  #watch(everyMs: number): void {
    const { runtime, config, events, workerId } = this.#parts
    const nowMs = runtime.clock.monotonicMs()
    const stalledMs = Math.round(nowMs - this.#watchedMs - everyMs)
    this.#watchedMs = nowMs
    if (stalledMs > config.heartbeatMs) events.emit({ name: 'worker.stalled', workerId, stalledMs })
    if (this.#sinceBeatMs() >= config.fenceAfterMs) this.#fence('beats-failed')
  }

  #fence(why: 'beats-failed' | 'declared-dead'): void {
    if (this.#stopped) return
    this.stop()
    this.#parts.onFence(why)
  }

  #sinceBeatMs(): number {
    return this.#parts.runtime.clock.monotonicMs() - this.#confirmedMs
  }

  #hasStopped(): boolean {
    return this.#stopped
  }
}
