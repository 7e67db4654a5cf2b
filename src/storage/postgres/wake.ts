/**
 * Hints that jobs may be ready. A commit of this process tells its own listeners at the end of the tick, and other
 * processes by NOTIFY: on a connection of its own, outside every transaction (the server serialises the commits of all
 * that notify), and at most once per few milliseconds however many jobs there are. Only an enqueue that comes after a
 * silence carries its NOTIFY itself, and its jobs are heard of one round trip earlier; where such commits stand in line,
 * nobody does for a while.
 *
 * Who listens keeps one connection open, asks it now and then whether it still listens (a half-open socket says nothing
 * by itself), and connects again for ever.
 *
 * Polling stays the truth: a hint may come for nothing and may be missing. But a LISTEN that fails is told, once until it
 * works again, because jobs of other processes then start later. A connection that was lost and is back at the first try is
 * no news. Nor is LISTEN itself a proof: a pooler in transaction mode accepts it for a session that somebody else has a
 * moment later. So after a question that found no channel only another question tells that all is well.
 */
import { ChokaQError } from '../../core/errors.ts'
import type { Runtime, Timer } from '../../core/runtime.ts'
import type { Hearing } from '../../core/storage.ts'
import { connect, type Connection, type ConnectionSettings } from './connection.ts'
import { translated } from './postgres-errors.ts'
import type { Notification } from './statements/enqueue.ts'

/** One NOTIFY per process in this time. */
const quietMs = 5
/** After so long without one, an insert carries it. */
const loneMs = 20
/** An insert that carried one and took longer than this has waited, maybe for others that do so: then none does for long. */
const slowMs = 20
const slowRestMs = 1_000
const pulseMs = 15_000
const firstRetryMs = 100
const maxRetryMs = 10_000

export interface WakeOptions {
  readonly runtime: Runtime
  readonly settings: ConnectionSettings
  readonly channel: string
  /** False behind a pooler in transaction mode. */
  readonly mayListen: boolean
  /** Sends one notification; rejections are of no interest. */
  readonly send: (channel: string, payload: string) => Promise<void>
}

export class Wake {
  readonly #options: WakeOptions
  /** Tells the own notifications from those of others. */
  readonly #sender: string
  readonly #listeners = new Set<() => void>()
  readonly #hearers = new Set<(hearing: Hearing) => void>()
  #hearing: Hearing = { hears: true }
  #hasLostSession = false
  #connection: Connection | undefined
  #connecting: Promise<void> | undefined
  #retryTimer: Timer | undefined
  #pulseTimer: Timer | undefined
  #retryMs = firstRetryMs
  #isDeferred = false
  #isClosed = false
  #lastSentMs = -Infinity
  #nextLoneMs = -Infinity
  #sendTimer: Timer | undefined
  #sending: Promise<void> = Promise.resolve()

  constructor(options: WakeOptions) {
    this.#options = options
    this.#sender = options.runtime.newId()
  }

  /** Whether other processes' commits are heard at this moment. */
  get isListening(): boolean {
    return this.#connection !== undefined
  }

  listen(listener: () => void, onHearing?: (hearing: Hearing) => void): () => void {
    // The same function may be registered twice; each registration ends by itself.
    const own = (): void => listener()
    const ownHearing = (hearing: Hearing): void => onHearing?.(hearing)
    this.#listeners.add(own)
    this.#hearers.add(ownHearing)
    if (!this.#hearing.hears) ownHearing(this.#hearing)
    this.#connect()
    return () => {
      this.#listeners.delete(own)
      this.#hearers.delete(ownHearing)
      if (this.#listeners.size === 0) this.#stopListening()
    }
  }

  /** Jobs of this process's own commit may be ready; `isSent` where the commit itself has told other processes. */
  notify({ isSent }: { readonly isSent: boolean }): void {
    if (this.#isClosed) return
    this.#tellLater()
    const nowMs = this.#options.runtime.clock.monotonicMs()
    if (!isSent) this.#sendSoon()
    else if (nowMs - this.#lastSentMs > slowMs) this.#nextLoneMs = nowMs + slowRestMs
  }

  /** What a lone enqueue of this process sends with its commit; undefined where others were told a moment ago. */
  takeLoneTurn(): Notification | undefined {
    if (this.#options.runtime.clock.monotonicMs() < this.#nextLoneMs) return undefined
    return this.takeTurn(loneMs) ? { channel: this.channel, payload: this.#sender } : undefined
  }

  /** For a transaction that another one commits: whether it should notify, so that not each of many does. */
  takeTurn(silenceMs = quietMs): boolean {
    const nowMs = this.#options.runtime.clock.monotonicMs()
    if (!this.#options.mayListen || nowMs - this.#lastSentMs < silenceMs) return false
    this.#lastSentMs = nowMs
    return true
  }

  /** What a notification of this process carries. */
  get payload(): string {
    return this.#sender
  }

  get channel(): string {
    return this.#options.channel
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#listeners.clear()
    this.#hearers.clear()
    this.#sendTimer?.cancel()
    this.#stopListening()
    await this.#connecting
    await this.#sending
  }

  #tellLater(): void {
    if (this.#isDeferred || this.#listeners.size === 0) return
    this.#isDeferred = true
    this.#options.runtime.scheduler.defer(() => {
      this.#isDeferred = false
      this.#tell()
    })
  }

  #tell(): void {
    if (this.#isClosed) return
    for (const listener of [...this.#listeners]) listener()
  }

  #sendSoon(): void {
    const { runtime, mayListen } = this.#options
    if (!mayListen || this.#sendTimer !== undefined) return
    const waitMs = quietMs - (runtime.clock.monotonicMs() - this.#lastSentMs)
    if (waitMs <= 0) {
      this.#send()
      return
    }
    const send = (): void => {
      this.#sendTimer = undefined
      this.#send()
    }
    this.#sendTimer = runtime.scheduler.after(waitMs, send, { keepAlive: false })
  }

  #send(): void {
    const { runtime, send, channel } = this.#options
    this.#lastSentMs = runtime.clock.monotonicMs()
    this.#sending = send(channel, this.#sender).catch(() => undefined)
  }

  #connect(): void {
    if (!this.#options.mayListen || this.#isClosed || this.#listeners.size === 0) return
    if (this.#connection !== undefined || this.#connecting !== undefined || this.#retryTimer !== undefined) return
    this.#connecting = this.#open().finally(() => {
      this.#connecting = undefined
    })
  }

  async #open(): Promise<void> {
    const { settings, channel } = this.#options
    let connection: Connection | undefined
    try {
      connection = await connect(settings, 'listen', (broken) => this.#lost(broken))
      connection.listen((payload) => {
        if (payload !== this.#sender) this.#tell()
      })
      await connection.query(`LISTEN "${channel}"`)
    } catch (error) {
      // A connection whose LISTEN had no answer is nobody's yet, and would keep the process alive.
      await connection?.close()
      this.#heard({ hears: false, error: translated(error, settings.target.location, 0) })
      this.#retryLater()
      return
    }
    if (this.#isClosed || this.#listeners.size === 0 || connection.isBroken) {
      await connection.close()
      if (!this.#isClosed && this.#listeners.size > 0) this.#retryLater()
      return
    }
    connection.hold(false)
    this.#connection = connection
    this.#retryMs = firstRetryMs
    if (!this.#hasLostSession) this.#heard({ hears: true })
    this.#pulseLater()
    // What was said while nobody listened is not repeated.
    this.#tell()
  }

  #heard(hearing: Hearing): void {
    if (this.#isClosed || this.#hearing.hears === hearing.hears) return
    this.#hearing = hearing
    for (const tell of [...this.#hearers]) tell(hearing)
  }

  #lost(connection: Connection): void {
    if (this.#connection !== connection) return
    this.#connection = undefined
    this.#pulseTimer?.cancel()
    void connection.close()
    this.#retryLater()
  }

  #retryLater(): void {
    const { runtime } = this.#options
    if (this.#isClosed || this.#listeners.size === 0 || this.#retryTimer !== undefined) return
    const delayMs = this.#retryMs * (0.5 + runtime.random() / 2)
    this.#retryMs = Math.min(maxRetryMs, this.#retryMs * 2)
    const retry = (): void => {
      this.#retryTimer = undefined
      this.#connect()
    }
    this.#retryTimer = runtime.scheduler.after(delayMs, retry, { keepAlive: false })
  }

  #pulseLater(): void {
    const pulse = (): void => {
      const connection = this.#connection
      if (connection === undefined) return
      // The statement's deadline marks a connection that says nothing as broken, which brings #lost here.
      connection.query('SELECT 1 FROM pg_catalog.pg_listening_channels()').then(
        (rows) => this.#felt(connection, rows.length > 0),
        () => connection.markBroken(),
      )
    }
    this.#pulseTimer = this.#options.runtime.scheduler.after(pulseMs, pulse, { keepAlive: false })
  }

  #felt(connection: Connection, doesListen: boolean): void {
    this.#hasLostSession = !doesListen
    if (doesListen) {
      this.#heard({ hears: true })
      this.#pulseLater()
      return
    }
    const problem =
      "the session does not listen any more; behind a pooler in transaction mode, set pooler: 'transaction'"
    this.#heard({ hears: false, error: new ChokaQError('CHOKAQ_STORAGE_FAILED', { problem }) })
    connection.markBroken()
  }

  #stopListening(): void {
    this.#retryTimer?.cancel()
    this.#retryTimer = undefined
    this.#pulseTimer?.cancel()
    const connection = this.#connection
    this.#connection = undefined
    void connection?.close()
  }
}
