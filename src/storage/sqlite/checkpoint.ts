/**
 * Empties the write-ahead log when the process has been quiet for a while. SQLite's own checkpoints run inside commits
 * and never shorten the file; this one does, at a moment when nobody waits for it.
 */
import type { Runtime, Timer } from '../../core/runtime.ts'
import type { Session } from './session.ts'
import { troubleOf } from './sqlite-errors.ts'

const idleMs = 5_000

export class IdleCheckpoint {
  readonly #runtime: Runtime
  readonly #session: Session
  #timer: Timer | undefined
  #lastWriteMs = 0

  constructor(runtime: Runtime, session: Session) {
    this.#runtime = runtime
    this.#session = session
  }

  /** Called after each commit, so it only notes the time while a timer runs. */
  touch(): void {
    this.#lastWriteMs = this.#runtime.clock.monotonicMs()
    if (this.#timer === undefined) this.#wait(idleMs)
  }

  close(): void {
    this.#timer?.cancel()
  }

  #wait(delayMs: number): void {
    this.#timer = this.#runtime.scheduler.after(delayMs, () => this.#look(), { keepAlive: false })
  }

  #look(): void {
    this.#timer = undefined
    const quietMs = this.#runtime.clock.monotonicMs() - this.#lastWriteMs
    // A reader that pins the log, or another process that checkpoints, makes this one come back later.
    if (quietMs < idleMs) this.#wait(idleMs - quietMs)
    else if (!this.#truncate()) this.#wait(idleMs)
  }

  #truncate(): boolean {
    try {
      const row = this.#session.get<{ readonly busy: number }>('PRAGMA wal_checkpoint(TRUNCATE)')
      this.#runtime.faults.reach('checkpoint')
      return row?.busy === 0
    } catch (error) {
      if (troubleOf(error) === 'unknown') throw error
      return false
    }
  }
}
