/**
 * Where a fetch may enter a lane, so that it need not walk over the dead.
 *
 * A fetched row leaves a dead entry at the front of its lane in the index of pending rows. Usually the next fetch that
 * comes by marks it and steps over it from then on. While somebody's transaction holds an old snapshot (a report, a
 * backup), nothing that died since may be marked or removed, and every fetch reads all of them again: after a million
 * jobs half a second for each fetch. So this process remembers how far it has come in each lane.
 *
 * What it remembers is a hint with gaps. A row may become pending behind the front: its transaction was open for long, its
 * worker died, it was given back. So the front keeps a distance from the present that covers what is usual, and every so
 * often a fetch looks at everything again. How often is a matter of cost: whole looks may take a twentieth of the time.
 * Where nothing is dead a whole look costs nothing extra, so all looks are whole, and no front is ever used.
 *
 *   whole looks --(one was slow, and the table has many dead rows)--> from the fronts, with a whole look now and then
 *   from the fronts --(a whole look was quick again)--> whole looks
 *
 * Rejected: a condition on run_at alone (a lane is ordered by priority first, so it would lose rows of lower priority, or
 * have to walk all of the lane's entries); asking for the oldest snapshot (vacuum may be late for other reasons).
 */
import type { FetchedJob } from '../../core/job.ts'

/**
 * Nothing is pending in the lane with a higher priority and due before `aboveMs`, with this priority and due before
 * `sameMs`, or with a lower priority and due before `belowMs`.
 */
export interface Front {
  readonly priority: number
  readonly aboveMs: number
  readonly sameMs: number
  readonly belowMs: number
}

/** By type. */
export type Fronts = ReadonlyMap<string, Front>

export interface Look {
  readonly queue: string
  readonly types: readonly string[]
  readonly limit: number
  readonly isWhole: boolean
  /** In the order of the queue. */
  readonly jobs: readonly FetchedJob[]
  /** The database's time of the look. */
  readonly atMs: number
  /** Dead rows of the table, as the server estimates them. */
  readonly deadCount: number
  readonly tookMs: number
  /** The monotonic clock after the look. */
  readonly nowMs: number
}

/** How far the front stays behind the present: rows that are committed this late are still met in order. */
const distanceMs = 2_000
/** A look that takes longer than this and a little per row has walked, if the table has as many dead rows. */
const quickMs = 10
const quickMsPerJob = 0.05
const manyDeadCount = 20_000
const restFactor = 20
const maxRestMs = 30_000

/** No lane has this priority: a lane that nothing is known of is looked at as a whole, as all that is below it. */
export const unknownFront: Front = { priority: 1_001, aboveMs: 0, sameMs: 0, belowMs: 0 }

interface Known {
  readonly fronts: Map<string, Front>
  /** When the next whole look is due. */
  wholeAtMs: number
}

export class FetchFronts {
  readonly #queues = new Map<string, Known>()

  /** Where to enter the lanes now; undefined for a whole look. */
  of(queue: string, nowMs: number): Fronts | undefined {
    const known = this.#queues.get(queue)
    return known === undefined || nowMs >= known.wholeAtMs ? undefined : known.fronts
  }

  /** Rows became pending behind the fronts. */
  forget(): void {
    this.#queues.clear()
  }

  learn(look: Look): void {
    const { queue, isWhole, deadCount, tookMs, jobs, nowMs } = look
    const known = this.#queues.get(queue) ?? { fronts: new Map<string, Front>(), wholeAtMs: -Infinity }
    if (isWhole) {
      const hasWalked = deadCount >= manyDeadCount && tookMs > quickMs + quickMsPerJob * jobs.length
      known.wholeAtMs = hasWalked ? nowMs + Math.min(maxRestMs, restFactor * tookMs) : -Infinity
    }
    this.#queues.set(queue, known)
    advance(known.fronts, look)
  }
}

function advance(fronts: Map<string, Front>, { types, limit, jobs, atMs }: Look): void {
  const presentMs = atMs - distanceMs
  if (jobs.length < limit) {
    // Whatever these lanes had is taken.
    const priority = jobs.at(-1)?.priority
    for (const type of types) {
      const at = priority ?? fronts.get(type)?.priority ?? 0
      fronts.set(type, { priority: at, aboveMs: presentMs, sameMs: presentMs, belowMs: presentMs })
    }
    return
  }
  const last = new Map(jobs.map((job) => [job.type, job]))
  for (const [type, { priority, runAtMs }] of last) {
    const { belowMs, sameMs, priority: before } = fronts.get(type) ?? unknownFront
    fronts.set(type, {
      priority,
      aboveMs: presentMs,
      sameMs: Math.min(runAtMs, presentMs),
      belowMs: priority > before ? Math.min(belowMs, sameMs) : belowMs,
    })
  }
}
