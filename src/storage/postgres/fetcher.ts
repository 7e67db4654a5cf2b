/** Fetch as a whole: which types to ask for, where to enter their lanes, and the queue's row first where it has a limit. */
import { hasCode } from '../../core/errors.ts'
import type { FetchedJob } from '../../core/job.ts'
import type { Clock } from '../../core/runtime.ts'
import type { FetchRequest } from '../../core/storage.ts'
import { FetchFronts, type Fronts } from './fetch-fronts.ts'
import { type Allowance, busyTypes, fetch, type Fetched, lockQueue, maxUnaskedTypes } from './statements/fetch.ts'
import type { Transaction, Unit } from './transactions.ts'

type Run = <T>(unit: Unit<T>) => Promise<T>

const faults = { beforeCommit: 'fetch-before-commit', committed: 'fetch-committed' } as const

export class Fetcher {
  readonly #run: Run
  readonly #clock: Clock
  readonly #fronts = new FetchFronts()
  /** Queues that had a limit when they were last asked. */
  readonly #limited = new Set<string>()

  constructor(run: Run, clock: Clock) {
    this.#run = run
    this.#clock = clock
  }

  async fetch(request: FetchRequest): Promise<readonly FetchedJob[]> {
    const { queue, policies } = request
    const fronts = this.#fronts.of(queue, this.#clock.monotonicMs())
    const isLimited = this.#limited.has(queue)
    let askedMs = 0
    let types: readonly string[] = policies.map(({ type }) => type)
    if (isLimited || types.length > maxUnaskedTypes) {
      const startedMs = this.#clock.monotonicMs()
      types = await this.#run({
        isOneStatement: true,
        isRepeatable: true,
        work: ({ session }) => busyTypes(session, request, fronts),
      })
      askedMs = this.#clock.monotonicMs() - startedMs
    }
    if (types.length === 0 || request.limit <= 0) return []
    if (isLimited) return this.#fetchLimited(request, types, fronts)
    const fetched = await this.#run({
      ...faults,
      isOneStatement: true,
      work: (tx) => this.#look(tx, request, types, fronts, { isHeld: false, askedMs }),
    })
    if (!fetched.isLimited) return fetched.jobs
    this.#limited.add(queue)
    return this.#fetchLimited(request, types, fronts)
  }

  /** Rows became pending that were fetched before: their places lie behind the fronts. */
  forgetFronts(): void {
    this.#fronts.forget()
  }

  async #look(
    tx: Transaction,
    request: FetchRequest,
    types: readonly string[],
    fronts: Fronts | undefined,
    { isHeld, askedMs }: { readonly isHeld: boolean; readonly askedMs: number },
  ): Promise<Fetched> {
    const startedMs = this.#clock.monotonicMs()
    const fetched = await fetch(tx, request, { types, fronts }, isHeld)
    const nowMs = this.#clock.monotonicMs()
    if (fetched.hasLooked) {
      const { jobs, atMs, deadCount } = fetched
      this.#fronts.learn({
        queue: request.queue,
        types: request.policies.map(({ type }) => type),
        limit: request.limit,
        isWhole: fronts === undefined,
        jobs,
        atMs,
        deadCount,
        tookMs: nowMs - startedMs + askedMs,
        nowMs,
      })
    }
    return fetched
  }

  async #fetchLimited(
    request: FetchRequest,
    types: readonly string[],
    fronts: Fronts | undefined,
  ): Promise<readonly FetchedJob[]> {
    const { queue } = request
    const work = async (tx: Transaction): Promise<{ allowed: Allowance; jobs: readonly FetchedJob[] }> => {
      const allowed = await lockQueue(tx.session, request)
      if (allowed.count <= 0) return { allowed, jobs: [] }
      const asked = { ...request, limit: allowed.count }
      return { allowed, jobs: (await this.#look(tx, asked, types, fronts, { isHeld: true, askedMs: 0 })).jobs }
    }
    try {
      const { allowed, jobs } = await this.#run({ ...faults, work })
      if (!allowed.isLimited) this.#limited.delete(queue)
      return jobs
    } catch (error) {
      // Others stand in line for the queue's row; the next poll asks again.
      if (hasCode(error, 'CHOKAQ_STORAGE_BUSY')) return []
      throw error
    }
  }
}
