// The history of a run: what every process said it was about to do, and what it was answered. Each process appends JSON
// lines to a file of its own, before and after each call, so that a SIGKILL loses at most the answer and never the call.
// The checker reads all files together; times are of one machine's wall clock.
import { closeSync, existsSync, openSync, readdirSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { SettleOutcome } from '../../src/core/storage.ts'

interface Common {
  /** Wall clock, milliseconds with fractions. */
  readonly at: number
  readonly pid: number
  /** Of the process, such as 'worker-a'. */
  readonly by: string
  /** Position in the process's own file. */
  readonly seq: number
}

interface OfLease {
  readonly job: string
  readonly fence: number
}

/** One shape for several kinds, so that each kind can be told from the others. */
type Each<K extends string, Shape> = K extends string ? { readonly kind: K } & Shape : never

/** A call and its answer carry the same number. */
interface Call {
  readonly call: number
}

export interface Policy {
  readonly attempts: number
  readonly baseMs: number
  readonly factor: number
  readonly capMs: number
  readonly jitter: number
}

type Event =
  // processes, written by the fixtures and by whoever starts and kills them
  | { readonly kind: 'up'; readonly role: string; readonly workerId?: string }
  | { readonly kind: 'kill'; readonly target: number; readonly point: string }
  | Each<'freeze' | 'thaw', { readonly target: number }>
  | { readonly kind: 'stop.call'; readonly target: number; readonly graceMs: number }
  | { readonly kind: 'exit'; readonly target: number; readonly code: number | null; readonly signal: string | null }
  /** From here on no faults: liveness is judged in the tail of a run. */
  | { readonly kind: 'quiet' }
  // enqueue
  | {
      readonly kind: 'enq.call'
      readonly op: string
      readonly id: string | null
      readonly key: string | null
      readonly hash: string
      readonly type: string
      readonly delayMs: number
      readonly poison: boolean
      /** In a transaction of the caller's, beside a row of the caller's. */
      readonly outbox: boolean
      /** Made by a handler, so it exists only if that attempt completes. */
      readonly parent: string | null
    }
  | { readonly kind: 'enq.ok'; readonly op: string; readonly job: string; readonly outcome: string }
  | Each<'enq.fail' | 'enq.unknown', { readonly op: string; readonly code: string }>
  // a worker and its leases
  | ({ readonly kind: 'fetch.call'; readonly queue: string; readonly workerId: string } & Call)
  | ({
      readonly kind: 'claim'
      readonly hash: string
      readonly queue: string
      readonly type: string
      readonly workerId: string
      readonly started: boolean
      readonly attempt: number
      readonly failures: number
    } & OfLease &
      Call)
  | ({ readonly kind: 'fetch.ok'; readonly count: number } & Call)
  | ({ readonly kind: 'start.call' } & OfLease & Call)
  | ({ readonly kind: 'start.ok'; readonly verdict: string; readonly attempt: number | null } & OfLease & Call)
  | Each<'hb.ok' | 'hb.lost', { readonly workerId: string }>
  | { readonly kind: 'fenced'; readonly workerId: string; readonly why: string }
  /** A call of the storage failed, and the worker says so. */
  | { readonly kind: 'trouble'; readonly during: string }
  | { readonly kind: 'disowned'; readonly workerId: string; readonly count: number }
  // handlers
  | {
      readonly kind: 'run.begin'
      readonly job: string
      readonly attempt: number
      readonly hash: string
      readonly key: string | null
      readonly type: string
    }
  | { readonly kind: 'run.end'; readonly job: string; readonly attempt: number; readonly ok: boolean }
  | { readonly kind: 'effect'; readonly job: string; readonly attempt: number; readonly op: string }
  | { readonly kind: 'abort'; readonly job: string; readonly attempt: number; readonly reason: string }
  // settle
  | ({
      readonly kind: 'ack.call'
      readonly action: string
      readonly reason: string | null
      readonly charged: boolean
      readonly delayMs: number | null
    } & OfLease &
      Call)
  | ({ readonly kind: 'ack.ok'; readonly outcome: SettleOutcome; readonly repeated: boolean } & OfLease & Call)
  | Each<'ack.lost' | 'ack.refused', OfLease & Call>
  // sweep
  | ({ readonly kind: 'rescue.call' } & Call)
  | ({ readonly kind: 'rescued'; readonly job: string; readonly workerId: string; readonly went: string } & Call)
  // operators
  | { readonly kind: 'cancel.ok'; readonly job: string; readonly verdict: string }
  | Each<'pause.call' | 'pause.ok' | 'resume.call' | 'resume.ok', { readonly queue: string }>
  | { readonly kind: 'limit'; readonly queue: string; readonly n: number }
  | { readonly kind: 'resurrect.call'; readonly job: string; readonly mode: string }
  | { readonly kind: 'resurrect.ok'; readonly job: string; readonly verdict: string }
  | { readonly kind: 'policy'; readonly type: string; readonly policy: Policy }

export type Line = Event & Common
export type NewLine = Event
export type LineOf<K extends Line['kind']> = Extract<Line, { readonly kind: K }>

export function linesOf<K extends Line['kind']>(history: readonly Line[], ...kinds: readonly K[]): LineOf<K>[] {
  const wanted: ReadonlySet<string> = new Set(kinds)
  return history.filter((line): line is LineOf<K> => wanted.has(line.kind))
}

/** Reads the files of a run as they grow: each look reads only what was added since the last. */
export class HistoryReader {
  readonly #folder: string
  readonly #files = new Map<string, { offset: number; readonly lines: Line[] }>()

  constructor(folder: string) {
    this.#folder = folder
  }

  /** All lines of all files, in the order of their times; within a process in the order of writing. */
  read(): Line[] {
    return this.unsorted().sort((a, b) => a.at - b.at || a.pid - b.pid || a.seq - b.seq)
  }

  unsorted(): Line[] {
    const names = existsSync(this.#folder) ? readdirSync(this.#folder) : []
    return names.flatMap((name) => this.#linesOf(join(this.#folder, name)))
  }

  #linesOf(file: string): readonly Line[] {
    const known = this.#files.get(file) ?? { offset: 0, lines: [] }
    this.#files.set(file, known)
    const size = statSync(file).size
    if (size === known.offset) return known.lines
    const added = Buffer.alloc(size - known.offset)
    const descriptor = openSync(file, 'r')
    readSync(descriptor, added, 0, added.length, known.offset)
    closeSync(descriptor)
    // The last line may be half written, or torn for ever by a kill: it is taken once its end is there.
    const end = added.lastIndexOf(10) + 1
    const texts = added.subarray(0, end).toString('utf8').split('\n').slice(0, -1)
    for (const text of texts) known.lines.push(JSON.parse(text) as Line)
    known.offset += end
    return known.lines
  }
}
