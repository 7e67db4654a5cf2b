/**
 * When to look for work. The loop has one fetch under way at a time and is in one of three states:
 *
 *   fetching --(got all it asked for, and room)--> fetching
 *   fetching --(got less, or no room)--> waiting --(kick: wake-up or room)--> fetching
 *                                        waiting --(poll timer)--> fetching
 *   any --(stop)--> stopped
 *
 * A wake-up is a hint and polling is the truth: with every wake-up lost, a job still starts within one poll. After a
 * storage error it waits longer each time, up to five seconds.
 */
import type { FetchedJob } from '../../core/job.ts'
import type { Scheduler, Timer } from '../../core/runtime.ts'

export interface FetchLoopParts {
  readonly scheduler: Scheduler
  readonly random: () => number
  readonly queues: readonly string[]
  readonly pollMs: number
  /** How many jobs could be taken now; 0 while the buffer is full enough. */
  readonly room: () => number
  /** Those of the queues that have something. */
  readonly busy: (queues: readonly string[]) => Promise<readonly string[]>
  readonly fetch: (queue: string, limit: number) => Promise<readonly FetchedJob[]>
  readonly deliver: (jobs: readonly FetchedJob[]) => void
  readonly onError: (error: unknown) => void
}

const maxErrorDelayMs = 5_000
const firstErrorDelayMs = 100
/** While idle the poll grows to this multiple: a wake-up ends it at once. */
const idlePollFactor = 2

export class FetchLoop {
  readonly #parts: FetchLoopParts
  #running = false
  #fetching = false
  #kicked = false
  #kicksSoon = false
  #turn = 0
  #errorCount = 0
  #emptyCount = 0
  #timer: Timer | undefined
  #current: Promise<void> = Promise.resolve()

  constructor(parts: FetchLoopParts) {
    this.#parts = parts
  }

  start(): void {
    this.#running = true
    this.kick()
  }

  /** Resolves when no fetch is under way any more; what it still brings is delivered. */
  stop(): Promise<void> {
    this.#running = false
    this.#timer?.cancel()
    return this.#current
  }

  /** There may be work, or room for it. */
  kick(): void {
    this.#kicked = true
    if (!this.#running || this.#fetching || this.#parts.room() === 0) return
    this.#current = this.#run()
  }

  /** A kick at the end of the tick, for all who ask for one in it: many small fetches cost more than a large one. */
  kickSoon(): void {
    if (this.#kicksSoon) return
    this.#kicksSoon = true
    this.#parts.scheduler.defer(() => {
      this.#kicksSoon = false
      this.kick()
    })
  }

  /** One pass over the queues, outside the loop: for worker.tick(). */
  async once(): Promise<number> {
    const { asked, got } = await this.#fetchRound(this.#parts.room())
    return Math.min(asked, got)
  }

  async #run(): Promise<void> {
    this.#fetching = true
    this.#timer?.cancel()
    try {
      let more = true
      while (more && this.#isRunning()) {
        this.#kicked = false
        const room = this.#parts.room()
        if (room === 0) break
        const { asked, got } = await this.#fetchRound(room)
        this.#errorCount = 0
        this.#emptyCount = got === 0 ? this.#emptyCount + 1 : 0
        more = got >= asked || this.#wasKicked()
      }
    } catch (error) {
      this.#errorCount += 1
      this.#parts.onError(error)
    } finally {
      this.#fetching = false
    }
    this.#armTimer()
  }

  // Both change while #run awaits; read through a method, so that the compiler does not think it knows them.
  #isRunning(): boolean {
    return this.#running
  }
  #wasKicked(): boolean {
    return this.#kicked
  }

  /**
   * Asks each queue in turn until the room is filled; the next round begins with the next queue. After a round that found
   * nothing, one question to all of them comes first: an idle worker costs the same however many queues it serves.
   */
  async #fetchRound(room: number): Promise<{ asked: number; got: number }> {
    const { queues, busy, fetch, deliver } = this.#parts
    const inTurn = [...queues.slice(this.#turn), ...queues.slice(0, this.#turn)]
    const worth = queues.length > 1 && this.#emptyCount > 0 ? new Set(await busy(inTurn)) : undefined
    let got = 0
    for (const queue of inTurn) {
      if (got >= room) break
      if (worth?.has(queue) === false) continue
      const jobs = await fetch(queue, room - got)
      got += jobs.length
      if (jobs.length > 0) deliver(jobs)
    }
    this.#turn = (this.#turn + 1) % queues.length
    return { asked: room, got }
  }

  #armTimer(): void {
    if (!this.#running) return
    const { scheduler, pollMs, random } = this.#parts
    const errorDelayMs = Math.min(maxErrorDelayMs, firstErrorDelayMs * 2 ** Math.min(10, this.#errorCount))
    const idleMs = this.#emptyCount > 1 ? pollMs * idlePollFactor : pollMs
    // Jitter keeps many workers from asking in step.
    const delayMs = this.#errorCount > 0 ? errorDelayMs : idleMs * (0.9 + 0.2 * random())
    this.#timer?.cancel()
    this.#timer = scheduler.after(delayMs, () => {
      this.kick()
    })
  }
}
