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
  readonly #open = new Set<Connection>()
  #busyCount = 0
  #isClosed = false

  constructor(settings: ConnectionSettings, name: string, maxCount: number) {
    this.#settings = settings
    this.#name = name
    this.#maxCount = maxCount
  }

  /** Runs `work` on a connection that nobody else uses meanwhile. */
  async use<T>(call: string, work: (connection: Connection) => Promise<T>): Promise<T> {
    await this.#takePlace(call)
    try {
      const connection = await this.#connection(call)
      connection.hold(true)
      try {
        return await work(connection)
      } finally {
        this.#giveBack(connection)
      }
    } finally {
      this.#busyCount -= 1
      this.#line.shift()?.resolve()
    }
  }

  /** Waiting calls are refused; those under way finish on their connections, which are then closed. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const { call, reject } of this.#line.splice(0)) reject(new ChokaQError('CHOKAQ_STORAGE_CLOSED', { call }))
    await Promise.all(this.#idle.splice(0).map((connection) => connection.close()))
  }

  async #takePlace(call: string): Promise<void> {
    if (this.#busyCount >= this.#maxCount) {
      await new Promise<void>((resolve, reject) => void this.#line.push({ call, resolve, reject }))
    }
    // Taken in the same turn in which the place was given: nobody can come in between.
    this.#busyCount += 1
  }

  async #connection(call: string): Promise<Connection> {
    if (this.#isClosed) throw new ChokaQError('CHOKAQ_STORAGE_CLOSED', { call })
    const idle = this.#idle.pop()
    if (idle !== undefined) return idle
    let made: Connection | undefined = undefined as Connection | undefined
    const connection = await connect(this.#settings, this.#name, () => {
      if (made !== undefined) this.#forget(made)
    })
    made = connection
    if (!connection.isBroken) this.#open.add(connection)
    return connection
  }

  #giveBack(connection: Connection): void {
    if (connection.isBroken || this.#isClosed) {
      this.#forget(connection)
      void connection.close()
      return
    }
    connection.hold(false)
    this.#idle.push(connection)
  }

  #forget(connection: Connection): void {
    this.#open.delete(connection)
    const at = this.#idle.indexOf(connection)
    if (at === -1) return
    this.#idle.splice(at, 1)
    void connection.close()
  }
}
