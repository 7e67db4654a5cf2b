/**
 * A few connections for one purpose, opened when they are needed. There is one lane for what may wait (enqueue, fetch,
 * sweep, operators), one for the outcomes of jobs and one for the heartbeat, so that a flood in the first never costs a
 * lease. Whoever finds all connections busy waits in line: each holder has a deadline of its own, so the line moves.
 */
import { ChokaQError } from '../../core/errors.ts'
import { connect, type Connection, type ConnectionSettings } from './connection.ts'

interface Waiting {
  readonly call: string
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

export class Lane {
  readonly #settings: ConnectionSettings
  readonly #name: string
  readonly #maxCount: number
  readonly #idle: Connection[] = []
  readonly #line: Waiting[] = []
  readonly #whenQuiet: (() => void)[] = []
  #busyCount = 0
  #isClosed = false

  constructor(settings: ConnectionSettings, name: string, maxCount: number) {
    this.#settings = settings
    this.#name = name
    this.#maxCount = maxCount
  }

  /** Runs `work` on a connection that nobody else uses meanwhile. */
  async use<T>(call: string, work: (connection: Connection) => Promise<T>): Promise<T> {
    this.#refuseClosed(call)
    if (this.#busyCount < this.#maxCount) this.#busyCount += 1
    // The place of whoever leaves is handed over, so nobody can come in between.
    else await new Promise<void>((resolve, reject) => void this.#line.push({ call, resolve, reject }))
    try {
      const connection = await this.#connection(call)
      try {
        return await work(connection)
      } finally {
        this.#giveBack(connection)
      }
    } finally {
      this.#leave()
    }
  }

  /** Waiting calls are refused, those under way are waited for. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const { call, reject } of this.#line.splice(0)) reject(new ChokaQError('CHOKAQ_STORAGE_CLOSED', { call }))
    await Promise.all(this.#idle.splice(0).map((connection) => connection.close()))
    if (this.#busyCount > 0) await new Promise<void>((resolve) => void this.#whenQuiet.push(resolve))
  }

  #leave(): void {
    const next = this.#line.shift()
    if (next !== undefined) {
      next.resolve()
      return
    }
    this.#busyCount -= 1
    if (this.#busyCount === 0) for (const resolve of this.#whenQuiet.splice(0)) resolve()
  }

  async #connection(call: string): Promise<Connection> {
    this.#refuseClosed(call)
    const idle = this.#idle.pop()
    if (idle === undefined) return connect(this.#settings, this.#name, (broken) => this.#forget(broken))
    idle.hold(true)
    return idle
  }

  #giveBack(connection: Connection): void {
    if (connection.isBroken || this.#isClosed) {
      void connection.close()
      return
    }
    connection.hold(false)
    this.#idle.push(connection)
  }

  /** A connection that breaks while nobody uses it is not handed out again. */
  #forget(connection: Connection): void {
    const at = this.#idle.indexOf(connection)
    if (at === -1) return
    this.#idle.splice(at, 1)
    void connection.close()
  }

  #refuseClosed(call: string): void {
    if (this.#isClosed) throw new ChokaQError('CHOKAQ_STORAGE_CLOSED', { call })
  }
}
