// The lifecycle as a few lines of plain code over a map: what a storage must do, without how. It knows no SQL, no batch
// and no index, and is small enough to be read beside core/lifecycle.ts.
import type { DeadReason, ArchiveOutcome, HotState } from '../../../src/core/job.ts'
import type { Place } from '../../../src/core/lifecycle.ts'
import type { SettleAction, SettleOutcome, TypePolicy } from '../../../src/core/storage.ts'
import { policy } from '../../../src/testing/conformance/new-job.ts'

const lasting = { retryLifetimeMs: 1e12, markerLifeMs: 1e12, crashBudget: 1, fetchCrashBudget: 2 }
export const policies = {
  plain: policy({ ...lasting, type: 'plain.v1', fastStart: true }),
  gated: policy({ ...lasting, type: 'gated.v1' }),
  keyed: policy({ ...lasting, type: 'keyed.v1', keyed: true, fastStart: true }),
  review: policy({ ...lasting, type: 'review.v1', keyed: true, whenInterrupted: 'review' }),
  /** Enqueued without its key. */
  raw: policy({ ...lasting, type: 'raw.v1', keyed: true, fastStart: true }),
} satisfies Record<string, TypePolicy>
export type ModelType = keyof typeof policies
export const types = Object.keys(policies) as readonly ModelType[]
export const allPolicies: readonly TypePolicy[] = Object.values(policies)

export interface ModelJob {
  readonly id: string
  readonly type: ModelType
  readonly priority: number
  place: Place
  outcome: ArchiveOutcome | undefined
  reason: DeadReason | undefined
  /** As the storage gave it; 0 before the first fetch. */
  token: number
  worker: string | undefined
  fetchedAtMs: number
  key: string | undefined
  keyComputed: boolean
  runAtMs: number
  generation: number
  attempt: number
  failures: number
  crashes: number
  fetchCrashes: number
  suspect: boolean
  fastStarted: boolean
  cancelRequested: boolean
  inDoubt: boolean
}

interface ModelMarker {
  readonly state: 'completed' | 'in_doubt'
  readonly jobId: string
  readonly generation: number
}

export interface ModelOptions {
  /** Whether a fetch may start a row whose key a worker computed; see the list of differences in storage-model.test.ts. */
  readonly fastStartsComputedKeys: boolean
}

export class Model {
  readonly #options: ModelOptions
  readonly jobs: ModelJob[] = []
  readonly markers = new Map<string, ModelMarker>()
  /** Every way in which a job ended, brought back later or not. */
  readonly ends = new Set<ArchiveOutcome | DeadReason>()
  isPaused = false
  nowMs = 0

  constructor(options: ModelOptions) {
    this.#options = options
  }

  hotHolder(key: string): ModelJob | undefined {
    return this.jobs.find((job) => job.key === key && isHot(job))
  }

  owned(job: ModelJob): boolean {
    return job.place === 'fetched' || job.place === 'processing'
  }

  /** The generation of a key's next holder. */
  generationOf(key: string): number {
    const dead = this.jobs.filter((job) => job.key === key && job.place === 'dlq').map(({ generation }) => generation)
    return Math.max(1, this.markers.get(key)?.generation ?? 0, ...dead)
  }

  // ---- fetch and start

  fetchOrder(limit: number): readonly ModelJob[] {
    if (this.isPaused) return []
    return this.jobs
      .filter(({ place }) => place === 'pending')
      .sort((a, b) => b.priority - a.priority || a.runAtMs - b.runAtMs || (a.id < b.id ? -1 : 1))
      .slice(0, limit)
  }

  mayFastStart(job: ModelJob): boolean {
    if (!policies[job.type].fastStart || job.crashes > 0 || job.suspect || job.cancelRequested) return false
    if (job.key === undefined) return !policies[job.type].keyed
    return (!job.keyComputed || this.#options.fastStartsComputedKeys) && !this.markers.has(job.key)
  }

  fetch(job: ModelJob, worker: string, token: number): void {
    const fast = this.mayFastStart(job)
    Object.assign(job, { worker, token, fetchedAtMs: this.nowMs, fastStarted: fast })
    job.place = fast ? 'processing' : 'fetched'
    if (fast) job.attempt += 1
  }

  /** What start answers for a row that its lease owns. */
  startVerdict(job: ModelJob): 'started' | 'cancelled' | 'paused' | 'duplicate' | 'lost' {
    if (job.place === 'processing') return 'started'
    if (job.cancelRequested) return 'cancelled'
    if (this.isPaused) return 'paused'
    const marker = job.key === undefined ? undefined : this.markers.get(job.key)
    if (marker !== undefined && !(marker.jobId === job.id && marker.state === 'in_doubt')) return 'duplicate'
    return job.key === undefined && policies[job.type].keyed ? 'lost' : 'started'
  }

  start(job: ModelJob): void {
    if (job.place === 'processing') return
    job.place = 'processing'
    job.attempt += 1
    job.fastStarted = false
  }

  // ---- settle

  /** What a settle under this job's own lease does. */
  settle(job: ModelJob, action: SettleAction): SettleOutcome {
    switch (action.kind) {
      case 'complete':
        return this.#complete(job)
      case 'retry':
        if (action.charge === 'failure') job.failures += 1
        if (job.cancelRequested) return this.#cancel(job, this.#isInterruptedReview(job))
        this.#wait(job, action.delayMs)
        return 'retried'
      case 'bury':
        if (action.failure !== null && job.place === 'processing') job.failures += 1
        this.#bury(job, action.reason, action.hold)
        return 'dead'
      case 'skip':
        this.#archive(job, 'skipped')
        return 'skipped'
      case 'defer':
        if (job.fastStarted) job.attempt -= 1
        if (job.keyComputed) Object.assign(job, { key: undefined, keyComputed: false })
        this.#wait(job, action.delayMs)
        job.place = 'scheduled'
        return 'deferred'
      case 'cancel':
        return this.#cancel(job, action.hold)
      case 'release':
        this.giveBack(job)
        return 'released'
    }
  }

  giveBack(job: ModelJob): void {
    if (job.fastStarted) job.attempt -= 1
    job.place = 'pending'
    Object.assign(job, { worker: undefined, fastStarted: false })
  }

  #complete(job: ModelJob): SettleOutcome {
    const marker = job.key === undefined ? undefined : this.markers.get(job.key)
    if (marker !== undefined && marker.jobId !== job.id) {
      this.#bury(job, 'CompleteConflict', false)
      return 'conflict'
    }
    if (job.key !== undefined) this.#mark(job, 'completed')
    this.#archive(job, 'completed')
    return 'completed'
  }

  #cancel(job: ModelJob, hold: boolean): SettleOutcome {
    if (hold) this.#bury(job, 'InDoubt', true)
    else this.#archive(job, 'cancelled')
    return hold ? 'dead' : 'cancelled'
  }

  #wait(job: ModelJob, delayMs: number): void {
    job.runAtMs = this.nowMs + delayMs
    job.place = delayMs > 0 ? 'scheduled' : 'pending'
    Object.assign(job, { worker: undefined, fastStarted: false })
  }

  #archive(job: ModelJob, outcome: ArchiveOutcome): void {
    this.ends.add(outcome)
    Object.assign(job, { place: 'archive', outcome, worker: undefined })
  }

  #bury(job: ModelJob, reason: DeadReason, hold: boolean): void {
    if (hold && job.key !== undefined) {
      const marker = this.markers.get(job.key)
      if (marker === undefined || marker.jobId === job.id) this.#mark(job, 'in_doubt')
    }
    this.ends.add(reason)
    Object.assign(job, { place: 'dlq', reason, inDoubt: hold, worker: undefined })
  }

  #mark(job: ModelJob, state: ModelMarker['state']): void {
    if (job.key !== undefined) this.markers.set(job.key, { state, jobId: job.id, generation: job.generation })
  }

  #isInterruptedReview(job: ModelJob): boolean {
    return job.place === 'processing' && policies[job.type].whenInterrupted === 'review'
  }

  // ---- sweep and operators

  /** Where the rescue of a dead worker's row puts it. The storage raises its token. */
  rescue(job: ModelJob): 'pending' | 'dead' | 'cancelled' {
    const isRunning = job.place === 'processing'
    const hold = this.#isInterruptedReview(job)
    if (job.cancelRequested) return this.#cancel(job, hold) === 'dead' ? 'dead' : 'cancelled'
    if (isRunning && !job.fastStarted) job.crashes += 1
    if (!isRunning) job.fetchCrashes += 1
    const { crashBudget, fetchCrashBudget } = policies[job.type]
    if (hold || job.crashes > crashBudget || job.fetchCrashes > fetchCrashBudget) {
      this.#bury(job, 'Interrupted', hold)
      return 'dead'
    }
    job.place = 'pending'
    Object.assign(job, { worker: undefined, fastStarted: false, suspect: job.suspect || isRunning })
    return 'pending'
  }

  cancelWaiting(job: ModelJob): void {
    this.#cancel(job, false)
  }

  /** What stands in the way of a dead job's return; undefined where nothing does. */
  obstacle(job: ModelJob, mode: 'continue' | 'new-operation', isStated: boolean): string | undefined {
    if (job.place !== 'dlq') return 'not-found'
    if (job.key !== undefined && this.hotHolder(job.key) !== undefined) return 'active'
    const marker = job.key === undefined ? undefined : this.markers.get(job.key)
    const inDoubt = job.inDoubt || (marker?.state === 'in_doubt' && marker.jobId === job.id)
    if (mode === 'new-operation') {
      if (marker?.state === 'in_doubt' && marker.jobId !== job.id) return 'marked'
      return inDoubt && !isStated ? 'not-absent' : undefined
    }
    if (inDoubt) return 'in-doubt'
    return marker === undefined ? undefined : 'marked'
  }

  resurrect(job: ModelJob, mode: 'continue' | 'new-operation'): void {
    if (mode === 'new-operation') {
      job.generation = 1 + Math.max(job.generation, job.key === undefined ? 0 : this.generationOf(job.key))
      if (job.key !== undefined) this.markers.delete(job.key)
    }
    job.place = 'pending'
    const anew = { failures: 0, crashes: 0, fetchCrashes: 0, suspect: false, cancelRequested: false, inDoubt: false }
    Object.assign(job, { ...anew, runAtMs: this.nowMs, fastStarted: false, reason: undefined })
  }
}

export function isHot(job: ModelJob): boolean {
  return (['scheduled', 'pending', 'fetched', 'processing'] as readonly (Place | HotState)[]).includes(job.place)
}
