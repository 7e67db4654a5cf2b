/** The decisions that end a doubt, and what each would do. */
import type { Decision } from '../../core/inspector.ts'
import type { JobRecord } from '../../core/job.ts'
import type { JobTypeRow } from '../../core/registration.ts'
import { decisions } from '../../core/inspector.ts'
import type { Review } from '../../engine/reviews.ts'
import type { LedgerRecord } from '../../core/ledger.ts'
import type { Context } from '../context.ts'
import { invalid } from '../problem.ts'
import { noteOf, optionalText, wholeOf, type Body } from '../request.ts'
import { effectAnswersOf } from '../views/answers.ts'
import type { Hide } from '../views/job.ts'
import type { ReviewAnswer, ReviewDetail, ReviewView } from '../wire-jobs.ts'
import { roles, type Role } from '../wire.ts'

const maxRevision = 2 ** 31 - 1
const maxResultLength = 2_000_000

export async function decideReview(
  context: Context,
  id: string,
  decision: Decision,
  body: Body,
): Promise<ReviewAnswer> {
  const by = { ...context.by(noteOf(body)), revision: wholeOf(body, 'revision', 0, maxRevision) }
  if (decision !== 'adopt') return context.chokaq.reviews[decision](id, by)
  const text = optionalText(body, 'result', maxResultLength)
  return context.chokaq.reviews.adopt(id, text === undefined ? undefined : resultOf(text), by, effectOf(body['effect']))
}

function resultOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw invalid('result must be JSON text: a text stands in quotes.')
  }
}

function effectOf(value: unknown): { readonly effect?: { readonly name: string; readonly item?: string } } {
  if (value === undefined || value === null) return {}
  if (typeof value !== 'object') throw invalid('effect must be { name, item }.')
  const name = optionalText(value as Body, 'name')
  const item = optionalText(value as Body, 'item')
  if (name === undefined) throw invalid('effect needs a name.')
  return { effect: { name, ...(item === undefined ? {} : { item }) } }
}

export function reviewView(review: Review, hide: Hide): ReviewView {
  return {
    id: review.id,
    revision: review.revision,
    type: review.type,
    queue: review.queue,
    key: hide(review.key),
    reason: review.reason,
    message: hide(review.message),
    effect: review.effect ?? null,
    item: review.item === undefined ? null : hide(review.item),
    intentAtMs: review.intentAt?.getTime() ?? null,
    attempts: review.attempts,
    crashes: review.crashes,
    ownerGone: review.ownerGone ?? null,
  }
}

export interface Evidence {
  readonly review: Review
  readonly job: JobRecord
  readonly effects: readonly LedgerRecord[]
  readonly type: JobTypeRow | undefined
  readonly role: Role
}

export function decisionsFor(evidence: Evidence): ReviewDetail['decisions'] {
  const isOperator = roles.indexOf(evidence.role) >= roles.indexOf('operator')
  return decisions.map((decision) => {
    const obstacle = obstacleOf(decision, evidence)
    const explanation = obstacle === undefined ? consequence(decision, evidence) : obstacle
    const allowed = obstacle === undefined && isOperator
    return { decision, allowed, explanation: isOperator ? explanation : `${explanation} This needs the role operator.` }
  })
}

/** Why the decision is not possible now; the storage asks again when it is made. */
function obstacleOf(decision: Decision, { job, effects, type }: Evidence): string | undefined {
  if (decision !== 'compensate') return undefined
  if (job.keyHash === null) return 'The job has no key, so no effect of it is recorded that could be undone.'
  if (doubtsOf(job, effects).length > 0) {
    return 'An effect is still in doubt: adopt its result or retry first, so that it is known what has to be undone.'
  }
  const known = effectAnswersOf(type)
  const missing = effects
    .filter((row) => row.kind === 'effect' && row.state === 'done' && row.generation === job.generation)
    .find((row) => known.some(({ name, compensates }) => name === row.name && !compensates))
  return missing === undefined
    ? undefined
    : `Effect ${missing.name} declares no compensate, so a worker could not undo it.`
}

function consequence(decision: Decision, { review, job, effects }: Evidence): string {
  const { effect } = review
  const late =
    review.ownerGone === false
      ? ' The worker that made the call is not proven dead: a late call of it may still arrive.'
      : ''
  switch (decision) {
    case 'adopt':
      return effect === undefined
        ? 'It happened: the job becomes complete with the result you give, and duplicates of it are answered with it.'
        : `${effect} happened: the result you give becomes that of the call, and the handler goes on from there.`
    case 'retry':
      return effect === undefined
        ? 'It did not happen: the job runs again from its beginning, under the same keys.'
        : `${effect} did not happen: the job runs again, and calls it under the same provider key.${late}`
    case 'abandon':
      return `The operation is given up: the job is archived as cancelled, and duplicates of it are answered already-failed. What happened stays.`
    case 'compensate': {
      const done = effects.filter(({ kind, state, generation }) => {
        return kind === 'effect' && state === 'done' && generation === job.generation
      })
      const names = [...new Set(done.map(({ name }) => name))].join(', ')
      return names === ''
        ? 'A worker is asked to undo what happened; nothing is recorded as done.'
        : `A worker undoes ${names}, the last one first, and the operation is over.`
    }
  }
}

function doubtsOf(job: JobRecord, effects: readonly LedgerRecord[]): readonly LedgerRecord[] {
  return effects.filter(
    ({ generation, state }) => generation === job.generation && (state === 'open' || state === 'ambiguous'),
  )
}
