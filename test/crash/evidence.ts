// What the invariants look at: the lines of a run in the shapes in which they are asked for, and the final snapshot.
import { leaseTimes } from './fixtures/work.ts'
import { linesOf, type Line, type LineOf } from './history.ts'
import type { Snapshot } from './snapshot.ts'

export interface Rules {
  /** A worker silent for this long may be taken for dead. */
  readonly deadAfterMs?: number
  readonly heartbeatMs?: number
  /** Crashes a started job may survive; not looked at where it is left out. */
  readonly crashBudget?: number
  /** From the death of a worker, with another one alive, to the return of its jobs. */
  readonly recoveryMs?: number
  /** From an enqueue in the quiet tail of a run to its start. */
  readonly startMs?: number
  /** What a busy machine may add to any of these. */
  readonly toleranceMs?: number
}

/** One lease: from the fetch that took it to whatever ended it. */
export interface Lease {
  readonly claim: LineOf<'claim'>
  /** The first answered or unanswered settle that was not told that the lease is lost. */
  readonly settled: { readonly atMs: number; readonly outcome: string | undefined } | undefined
  /** Whether its owner ever tried to settle it. */
  readonly isTold: boolean
  /** When its process was gone. */
  readonly goneAtMs: number
  /** When its worker fenced itself or was told that it is dead. */
  readonly fencedAtMs: number
  readonly disownedAtMs: number
}

/** One call of a handler. */
export interface Run {
  readonly begin: LineOf<'run.begin'>
  readonly lease: Lease | undefined
  readonly endAtMs: number | undefined
}

export class Evidence {
  readonly history: readonly Line[]
  readonly snapshot: Snapshot
  readonly rules: Required<Rules>
  readonly leases: readonly Lease[]
  readonly runs: readonly Run[]
  /** Leases of each job, in the order in which they were taken. */
  readonly byJob: ReadonlyMap<string, readonly Lease[]>
  readonly #byKind = new Map<string, readonly Line[]>()
  readonly #goneAt: ReadonlyMap<number, number>

  constructor(history: readonly Line[], snapshot: Snapshot, rules: Rules = {}) {
    this.history = history
    this.snapshot = snapshot
    this.rules = {
      deadAfterMs: leaseTimes.deadAfter,
      heartbeatMs: leaseTimes.heartbeat,
      crashBudget: Infinity,
      recoveryMs: leaseTimes.deadAfter + 4 * leaseTimes.sweep,
      startMs: 2 * leaseTimes.poll,
      toleranceMs: 2_500,
      ...rules,
    }
    this.#goneAt = firstTimes(linesOf(history, 'kill', 'exit'), (line) => line.target)
    this.leases = this.#readLeases()
    this.byJob = groupBy(this.leases, ({ claim }) => claim.job)
    this.runs = this.#readRuns()
  }

  /** All lines of these kinds, in the order of their times. */
  readonly of = <K extends Line['kind']>(...kinds: readonly K[]): readonly LineOf<K>[] => {
    const name = kinds.join()
    const known = this.#byKind.get(name) ?? linesOf(this.history, ...kinds)
    this.#byKind.set(name, known)
    return known as readonly LineOf<K>[]
  }

  /** When a process was killed or had ended; Infinity where it had not. */
  goneAt(pid: number): number {
    return this.#goneAt.get(pid) ?? Infinity
  }

  /** The last sign of life of a worker up to a moment. */
  lastBeat(workerId: string, untilMs: number): number {
    const beats = this.of('hb.ok', 'up').filter((line) => line.workerId === workerId && line.at <= untilMs)
    return beats.at(-1)?.at ?? -Infinity
  }

  #readLeases(): Lease[] {
    const settles = groupBy(this.of('ack.call', 'ack.ok', 'ack.lost', 'ack.refused'), leaseOf)
    const fenced = firstTimes(this.of('fenced', 'hb.lost'), (line) => line.workerId)
    const disowned = this.of('disowned')
    return this.of('claim').map((claim) => {
      const { workerId, at } = claim
      const said = settles.get(leaseOf(claim)) ?? []
      return {
        claim,
        settled: settledOf(said),
        isTold: said.length > 0,
        goneAtMs: this.goneAt(claim.pid),
        fencedAtMs: fenced.get(workerId) ?? Infinity,
        disownedAtMs: disowned.find((line) => line.workerId === workerId && line.at > at)?.at ?? Infinity,
      }
    })
  }

  #readRuns(): Run[] {
    const ends = groupBy(this.of('run.end'), runOf)
    const leases = groupBy(this.leases, ({ claim }) => `${claim.pid}/${claim.job}`)
    return this.of('run.begin').map((begin) => ({
      begin,
      lease: leases.get(`${begin.pid}/${begin.job}`)?.findLast(({ claim }) => claim.at <= begin.at),
      endAtMs: ends.get(runOf(begin))?.[0]?.at,
    }))
  }
}

function leaseOf({ job, fence }: { readonly job: string; readonly fence: number }): string {
  return `${job}/${fence}`
}

function runOf({
  job,
  attempt,
  pid,
}: {
  readonly job: string
  readonly attempt: number
  readonly pid: number
}): string {
  return `${pid}/${job}/${attempt}`
}

type Said = LineOf<'ack.call' | 'ack.ok' | 'ack.lost' | 'ack.refused'>

function settledOf(lines: readonly Said[]): Lease['settled'] {
  for (const line of lines) {
    if (line.kind !== 'ack.call') continue
    const answer = lines.find((each) => each.call === line.call && each.kind !== 'ack.call')
    if (answer === undefined) return { atMs: line.at, outcome: laterOutcome(lines) }
    if (answer.kind === 'ack.ok') return { atMs: line.at, outcome: answer.outcome }
  }
  return undefined
}

/** Where the reply was lost, a repeated call is told what the first one did. */
function laterOutcome(lines: readonly Said[]): string | undefined {
  return lines.find((line) => line.kind === 'ack.ok')?.outcome
}

export function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return groups
}

function firstTimes<T extends Line, K>(lines: readonly T[], keyOf: (line: T) => K): Map<K, number> {
  const times = new Map<K, number>()
  for (const line of lines) {
    const key = keyOf(line)
    times.set(key, Math.min(times.get(key) ?? Infinity, line.at))
  }
  return times
}

export function ms(value: number): string {
  return `${Math.round(value)} ms`
}
