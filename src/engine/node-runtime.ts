/** The Runtime of Node: the one place of the engine that touches clocks, timers, randomness and the process table. */
import { createHash, hash, randomFillSync } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { performance } from 'node:perf_hooks'
import { v7 } from 'uuid'
import type { ProcessIdentity, ProcessProbe, Runtime, Scheduler, Timer } from '../core/runtime.ts'

const maxTimerMs = 2 ** 31 - 1

const scheduler: Scheduler = {
  after(delayMs, task, options): Timer {
    const timer = setTimeout(task, Math.min(Math.max(0, delayMs), maxTimerMs))
    if (options?.keepAlive === false) timer.unref()
    return {
      cancel: () => {
        clearTimeout(timer)
      },
    }
  },
  defer(task): void {
    setImmediate(task)
  },
}

const idBytes = 16
const drawn = new Uint8Array(256 * idBytes)
let usedBytes = drawn.length
let msecs = -Infinity
let seq = 0

/**
 * UUIDs of version 7 that sort by their making, also within a millisecond and while the clock stands or steps back: the
 * random number in the middle is counted up instead of drawn again (RFC 9562, section 6.2, method 2). The random bytes of
 * many ids are drawn at once, because asking the system for them is most of what an id costs: 0.8 µs instead of 3.9 where
 * such a call is slow, as in a sandboxed container.
 */
export function newId(nowMs: number): string {
  if (usedBytes === drawn.length) {
    randomFillSync(drawn)
    usedBytes = 0
  }
  const random = drawn.subarray(usedBytes, (usedBytes += idBytes))
  if (nowMs > msecs) {
    msecs = nowMs
    // The highest bit is left free, so that counting up has room.
    seq = new DataView(random.buffer, random.byteOffset).getUint32(0) >>> 1
  } else {
    seq = (seq + 1) | 0
    if (seq === 0) msecs += 1
  }
  return v7({ random, msecs, seq })
}

/** A fresh Runtime. Defaults can be replaced for tests: `createNodeRuntime({ faults })`. */
export function createNodeRuntime(replace: Partial<Runtime> = {}): Runtime {
  return {
    clock: { nowMs: () => Date.now(), monotonicMs: () => performance.now() },
    scheduler,
    random: () => Math.random(),
    newId: () => newId(Date.now()),
    // crypto.hash came with Node 20.12 and saves the hash object; it is a third of the cost.
    sha256:
      typeof hash === 'function'
        ? (text) => hash('sha256', text, 'hex')
        : (text) => createHash('sha256').update(text).digest('hex'),
    byteLength: (text) => Buffer.byteLength(text),
    faults: { reach: () => undefined },
    processes: createProcessProbe(),
    ...replace,
  }
}

/**
 * Reads who processes are from /proc where there is one. Elsewhere nothing can be read, so nobody is ever declared gone
 * by it and only the beat decides.
 */
function createProcessProbe(): ProcessProbe {
  const self: ProcessIdentity = {
    host: hostname(),
    bootId: readText('/proc/sys/kernel/random/boot_id'),
    pidNamespace: readLink('/proc/self/ns/pid'),
    pid: process.pid,
    startTime: startTimeOf('self'),
  }
  return {
    self: () => self,
    isGone(identity) {
      if (identity.bootId === undefined || identity.pidNamespace === undefined || identity.startTime === undefined)
        return false
      if (self.bootId === undefined || self.pidNamespace === undefined || self.startTime === undefined) return false
      const sameWorld =
        identity.host === self.host && identity.bootId === self.bootId && identity.pidNamespace === self.pidNamespace
      if (!sameWorld) return false
      try {
        process.kill(identity.pid, 0)
      } catch (error) {
        // EPERM means that the process is there and belongs to somebody else.
        return (error as NodeJS.ErrnoException).code === 'ESRCH'
      }
      const startTime = startTimeOf(String(identity.pid))
      return startTime !== undefined && (startTime !== identity.startTime || stateOf(identity.pid) === 'Z')
    },
  }
}

/** Field 22 of /proc/PID/stat: when the process started, in ticks since boot. The name in field 2 may hold spaces. */
function startTimeOf(pid: string): string | undefined {
  const stat = readText(`/proc/${pid}/stat`)
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
}

/** Field 3: 'Z' is a killed process that its parent has not collected yet; it runs nothing. */
function stateOf(pid: number): string | undefined {
  const stat = readText(`/proc/${pid}/stat`)
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[0]
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return undefined
  }
}

function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}
