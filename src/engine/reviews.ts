/** The decisions that end a doubt. Every one takes the claim first, is audited, and is safe against a second operator. */
import type { ClientConfig } from '../core/config.ts'
import { ChokaQError, unreachable } from '../core/errors.ts'
import type { Actor, Decision, Inspector } from '../core/inspector.ts'
import type { JobRecord } from '../core/job.ts'
import { toJsonText } from '../core/json-image.ts'
import { countAnswered, typeAnswers } from '../core/type-answers.ts'
import type { LedgerRecord } from '../core/ledger.ts'
import type { Runtime } from '../core/runtime.ts'
import type { StorageDriver } from '../core/storage.ts'

/** A job that waits for a person, with what is known. */
export interface Review {
  readonly id: string
  /** Pass it back with the decision: it guards against a second operator. */
  readonly revision: number
  readonly type: string
  readonly queue: string
  /** The readable start of the business key; '' for a job without one. */
  readonly key: string
  readonly reason: string
  /** What the last attempt said. */
  readonly message: string
  /** The effect in doubt; undefined where the handler itself is. */
  readonly effect?: string
  readonly item?: string
  /** When the first call in doubt was about to be made. */
  readonly intentAt?: Date
  readonly attempts: number
  readonly crashes: number
  /** Whether the worker that made the call is proven dead: if not, a late call of it may still arrive. */
  readonly ownerGone?: boolean
}

export interface Operator extends Actor {
  /** The revision of the review the operator saw. */
  readonly revision: number
}

export type ReviewOutcome =
  { readonly outcome: 'resolved' } | { readonly outcome: 'already-resolved'; readonly by: string; readonly as: string }

export interface AdoptOptions {
  /** Which effect the result belongs to, where several are in doubt. */
  readonly effect?: { readonly name: string; readonly item?: string }
}

const maxListed = 500
const maxResultBytes = 1_000_000
/** Where a worker never told how long the type's markers live. */
const defaultMarkerLifeMs = 90 * 86_400_000

export class Reviews {
  readonly #driver: StorageDriver
  readonly #runtime: Runtime

  constructor(parts: { readonly driver: StorageDriver; readonly runtime: Runtime; readonly config: ClientConfig }) {
    this.#driver = parts.driver
    this.#runtime = parts.runtime
  }

  /** Newest first, at most 500. */
  list(filter: { readonly type?: string } = {}): Promise<Review[]> {
    return listReviews(this.#driver.inspector, filter)
  }

  /** One review with the whole record of its key; undefined where the job waits for nobody. */
  show(id: string): Promise<ShownReview | undefined> {
    return showReview(this.#driver.inspector, id)
  }

  /**
   * It happened, and this is its result: the effect's, where one is in doubt, and the handler goes on; else the job's,
   * which is then complete.
   */
  adopt(id: string, result: unknown, by: Operator, options: AdoptOptions = {}): Promise<ReviewOutcome> {
    const text =
      result === undefined
        ? null
        : toJsonText(result, 'The adopted result', {
            maxBytes: maxResultBytes,
            byteLength: (each) => this.#runtime.byteLength(each),
          })
    return this.#resolve(id, 'adopt', text, by, options)
  }

  /** It did not happen: the job runs again, under the same keys. */
  retry(id: string, by: Operator): Promise<ReviewOutcome> {
    return this.#resolve(id, 'retry', null, by, {})
  }

  /** The operation is given up: duplicates are answered `already-failed`. */
  abandon(id: string, by: Operator): Promise<ReviewOutcome> {
    return this.#resolve(id, 'abandon', null, by, {})
  }

  /** What happened is undone by a worker, with the effects' own `compensate`. */
  compensate(id: string, by: Operator): Promise<ReviewOutcome> {
    return this.#resolve(id, 'compensate', null, by, {})
  }

  async #resolve(
    id: string,
    decision: Decision,
    result: string | null,
    by: Operator,
    { effect }: AdoptOptions,
  ): Promise<ReviewOutcome> {
    const verdict = await this.#driver.inspector.resolve(
      {
        jobId: id,
        revision: by.revision,
        decision,
        effect: effect === undefined ? undefined : { name: effect.name, item: effect.item ?? '' },
        result,
        markerLifeMs: await this.#markerLifeMs(id),
        id: this.#runtime.newId(),
      },
      { actor: by.actor, note: by.note },
    )
    const refuse = (state: string): never => {
      throw new ChokaQError('CHOKAQ_NOT_POSSIBLE', { act: decision, id, state })
    }
    switch (verdict.kind) {
      case 'resolved':
        return { outcome: 'resolved' }
      case 'already-resolved':
        return { outcome: 'already-resolved', by: verdict.by, as: verdict.as }
      case 'not-found':
        throw new ChokaQError('CHOKAQ_JOB_NOT_FOUND', { id })
      case 'changed':
        return refuse(`at revision ${verdict.revision} by now, not ${by.revision}: look at it again`)
      case 'active':
        return refuse(`blocked, because job ${verdict.jobId} runs under its key`)
      case 'not-possible':
        return refuse(`not ready for it: ${verdict.problem}`)
      default:
        return unreachable(verdict, 'resolve verdict')
    }
  }

  async #markerLifeMs(id: string): Promise<number> {
    const job = await this.#driver.inspector.get(id)
    const row = (await this.#driver.inspector.jobTypes()).find(({ type }) => type === job?.type)
    return countAnswered(typeAnswers(row)['markerLifeMs']) ?? defaultMarkerLifeMs
  }
}

/** What reviews are made of. The Deck has readers of its own. */
type ReviewReads = Pick<Inspector, 'get' | 'list' | 'effects' | 'doubts'>

export interface ShownReview {
  readonly review: Review
  readonly job: JobRecord
  readonly effects: readonly LedgerRecord[]
}

export async function listReviews(reads: ReviewReads, filter: { readonly type?: string }): Promise<Review[]> {
  const page = await reads.list({
    pillar: 'dlq',
    filter: { inReview: true, ...(filter.type === undefined ? {} : { type: filter.type }) },
    limit: maxListed,
    cursor: undefined,
  })
  const doubts = await reads.doubts(page.jobs.map(({ id }) => id))
  return page.jobs.map((job) => reviewFrom(job, doubts.find(({ reviewId }) => reviewId === job.id)?.effect))
}

export async function showReview(reads: ReviewReads, id: string): Promise<ShownReview | undefined> {
  const job = await reads.get(id)
  if (job === undefined || job.pillar !== 'dlq') return undefined
  if (!job.inDoubt && job.reason !== 'CompleteConflict') return undefined
  const effects = await reads.effects(id)
  const doubt = effects.find(
    ({ generation, state }) => generation === job.generation && (state === 'open' || state === 'ambiguous'),
  )
  return { review: reviewFrom(job, doubt), job, effects }
}

/** `doubt` is the oldest call of its that is in doubt. */
function reviewFrom(job: JobRecord, doubt: LedgerRecord | undefined): Review {
  return {
    id: job.id,
    revision: job.revision,
    type: job.type,
    queue: job.queue,
    key: job.keyPrefix ?? '',
    reason: job.reason ?? '',
    message: job.failure?.message ?? '',
    attempts: job.attempt,
    crashes: job.crashCount,
    ...(doubt === undefined
      ? {}
      : {
          effect: doubt.name,
          ...(doubt.item === '' ? {} : { item: doubt.item }),
          intentAt: new Date(doubt.openedAtMs),
          ownerGone: doubt.ownerGone || doubt.state === 'ambiguous',
        }),
  }
}
