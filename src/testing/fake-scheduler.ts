/** Timers on virtual time, and the end of the tick. See fake-runtime.ts for the rules. */
import type { Scheduler, Timer } from '../core/runtime.ts'

export interface FakeScheduler extends Scheduler {
  /** Virtual milliseconds since the start. */
  nowMs(): number
  nextTimerMs(): number | undefined
  pendingTimerCount(): number
  advance(ms: number): Promise<void>
  settle(): Promise<void>
}

/** The longest delay a real timer can wait for; a longer one would fire at once. */
const maxDelayMs = 2 ** 31 - 1
/** Turns of the host's loop in which nothing was deferred and no timer set, after which a moment counts as over. */
const quietTurns = 4
/** A tick that defers for ever is a bug of the code under test. */
const maxTurns = 100_000

interface PendingTimer {
  readonly atMs: number
  readonly order: number
  readonly task: () => void
}

export function createFakeScheduler(yieldToHost: () => Promise<void>): FakeScheduler {
  const timers = new Set<PendingTimer>()
  const errors: unknown[] = []
  let deferred: (() => void)[] = []
  let nowMs = 0
  let order = 0
  let activity = 0
  let advancing = false

  function earliest(): PendingTimer | undefined {
    let first: PendingTimer | undefined
    for (const timer of timers) {
      if (first === undefined || timer.atMs < first.atMs || (timer.atMs === first.atMs && timer.order < first.order)) {
        first = timer
      }
    }
    return first
  }

  function runDeferred(): void {
    const tasks = deferred
    deferred = []
    for (const task of tasks) {
      try {
        task()
      } catch (error) {
        errors.push(error)
      }
    }
  }

  async function settle(): Promise<void> {
    let quiet = 0
    for (let turn = 0; quiet < quietTurns; turn += 1) {
      if (turn > maxTurns) throw new Error('The tick never ends: each deferred task defers another one')
      const before = activity
      await yieldToHost()
      quiet = activity === before && deferred.length === 0 ? quiet + 1 : 0
    }
    if (errors.length > 0) throw errors.shift()
  }

  async function advance(ms: number): Promise<void> {
    if (advancing) throw new Error('Time is moved by two callers at once; await the first advance()')
    if (!(ms >= 0)) throw new RangeError(`Time cannot move by ${ms} ms`)
    advancing = true
    try {
      const targetMs = nowMs + ms
      await settle()
      for (let timer = earliest(); timer !== undefined && timer.atMs <= targetMs; timer = earliest()) {
        timers.delete(timer)
        nowMs = Math.max(nowMs, timer.atMs)
        timer.task()
        await settle()
      }
      nowMs = targetMs
    } finally {
      advancing = false
    }
  }

  return {
    after(delayMs, task): Timer {
      activity += 1
      order += 1
      const timer = { atMs: nowMs + Math.min(Math.max(delayMs, 0), maxDelayMs), order, task }
      timers.add(timer)
      return { cancel: () => void timers.delete(timer) }
    },
    defer(task) {
      activity += 1
      deferred.push(task)
      if (deferred.length === 1) void yieldToHost().then(runDeferred)
    },
    nowMs: () => nowMs,
    nextTimerMs: () => earliest()?.atMs,
    pendingTimerCount: () => timers.size,
    advance,
    settle,
  }
}
