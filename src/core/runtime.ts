/**
 * Everything the engine takes from the world around it: time, randomness, ids, hashing and scheduling. The engine gets
 * one `Runtime` and never reaches past it, so the same engine code runs on Node and in a seeded simulator.
 */

export interface Clock {
  /** Wall clock, milliseconds since 1970. For times that are stored and shown. */
  nowMs(): number
  /** A clock that never steps back, milliseconds from an arbitrary start. For durations inside one process. */
  monotonicMs(): number
}

export interface Timer {
  cancel(): void
}

export interface Scheduler {
  /**
   * Runs `task` once after `delayMs` (clamped to 2^31 - 1, so that a long delay never fires at once).
   * `keepAlive: false` lets the process exit while the timer waits. Defaults to true.
   */
  after(delayMs: number, task: () => void, options?: { readonly keepAlive?: boolean }): Timer
  /** Runs `task` after what is ready now has run: the end of the current tick. */
  defer(task: () => void): void
}

export interface Runtime {
  readonly clock: Clock
  readonly scheduler: Scheduler
  /** Uniform in [0, 1). */
  random(): number
  /** A new UUID version 7: sorts by time of making. */
  newId(): string
  /** SHA-256 of the UTF-8 text, as 64 lower-case hexadecimal digits. */
  sha256(text: string): string
  /** Byte length of the UTF-8 text. */
  byteLength(text: string): number
  readonly faults: FaultPoints
  readonly processes: ProcessProbe
}

/**
 * Named places at which a test stops the process or the simulated worker. Outside tests nothing happens here. Each name
 * is the moment just after what it says; K-numbers of the crash matrix stand in test/crash.
 */
export type FaultPoint =
  | 'enqueue-before-commit'
  | 'enqueue-committed'
  | 'fetch-before-commit'
  | 'fetch-committed'
  | 'claim-committed'
  | 'start-committed'
  | 'handler-returned'
  | 'ledger-before-commit'
  | 'ledger-committed'
  | 'effect-called'
  | 'settle-before-commit'
  | 'settle-committed'
  | 'heartbeat-before-commit'
  | 'rescue-before-commit'
  | 'rescue-committed'
  | 'prune-before-commit'
  | 'resurrect-before-commit'
  | 'resolve-before-commit'
  | 'migration-step'
  | 'checkpoint'

export interface FaultPoints {
  reach(point: FaultPoint): void
}

/** Who a process is, precisely enough that a reused process number is not taken for it. */
export interface ProcessIdentity {
  readonly host: string
  readonly bootId: string | undefined
  readonly pidNamespace: string | undefined
  readonly pid: number
  readonly startTime: string | undefined
}

export interface ProcessProbe {
  self(): ProcessIdentity
  /** True only when the process is certainly gone: same host, boot and namespace, all readable, and no such process. */
  isGone(identity: ProcessIdentity): boolean
}
