/**
 * Hints that jobs may be ready. A commit of this process that readied jobs tells its listeners at the end of the tick;
 * commits of other connections are seen as a changed `PRAGMA data_version`, which SQLite keeps in shared memory and
 * which does not move for this connection's own commits. Polling stays the truth: a hint may come for nothing (any
 * commit moves the version) and may be missing (between two looks).
 */
import type { Runtime, Timer } from '../../core/runtime.ts'

const pollMs = 25

export interface WakeOptions {
  readonly runtime: Runtime
  /** The connection's data_version; undefined while it is not open. */
  readonly dataVersion: () => number | undefined
  /** False where no other process can write, as in memory. */
  readonly isShared: boolean
}

export class Wake {
  readonly #options: WakeOptions
  readonly #listeners = new Set<() => void>()
  #timer: Timer | undefined
  #isDeferred = false
  #isClosed = false
  #seen: number | undefined

  constructor(options: WakeOptions) {
    this.#options = options
  }

  listen(listener: () => void): () => void {
    // The same function may be registered twice; each registration ends by itself.
    const own = (): void => listener()
    this.#listeners.add(own)
    this.#seen ??= this.#options.dataVersion()
    this.#pollLater()
    return () => {
      this.#listeners.delete(own)
      if (this.#listeners.size === 0) this.#stop()
    }
  }

  /** Jobs of this process's own commit may be ready. */
  notify(): void {
    if (this.#isDeferred || this.#listeners.size === 0) return
    this.#isDeferred = true
    this.#options.runtime.scheduler.defer(() => {
      this.#isDeferred = false
      if (!this.#isClosed) this.#tell()
    })
  }

  close(): void {
    this.#isClosed = true
    this.#stop()
    this.#listeners.clear()
  }

  #pollLater(): void {
    if (this.#timer !== undefined || this.#isClosed || !this.#options.isShared) return
    this.#timer = this.#options.runtime.scheduler.after(
      pollMs,
      () => {
        this.#timer = undefined
        const version = this.#options.dataVersion()
        const hasChanged = this.#seen !== undefined && version !== undefined && version !== this.#seen
        this.#seen = version ?? this.#seen
        this.#pollLater()
        if (hasChanged) this.#tell()
      },
      { keepAlive: false },
    )
  }

  #stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#seen = undefined
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener()
  }
}
