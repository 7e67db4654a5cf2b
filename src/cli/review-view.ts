/** What waits for a person, as people and machines read it. */
import { formatMs } from '../core/duration.ts'
import { failureText } from '../core/failure.ts'
import type { JobRecord } from '../core/job.ts'
import type { LedgerRecord } from '../core/ledger.ts'
import type { Review } from '../engine/reviews.ts'
import { jsonOrText, storyText, storyValue, timeText, type JobStory } from './job-view.ts'
import { fieldLines, table, type Column } from './table.ts'

export interface AgedReview extends Review {
  /** How long ago the first call in doubt was about to be made. */
  readonly intentAgeMs?: number
}

export function withAges(reviews: readonly Review[], nowMs: number): readonly AgedReview[] {
  return reviews.map((review) => aged(review, nowMs))
}

function aged(review: Review, nowMs: number): AgedReview {
  const { intentAt } = review
  return intentAt === undefined ? review : { ...review, intentAgeMs: Math.max(0, nowMs - intentAt.getTime()) }
}

const columns: readonly Column<AgedReview>[] = [
  { title: 'ID', of: ({ id }) => id },
  { title: 'TYPE', of: ({ type }) => type },
  { title: 'KEY', of: ({ key }) => key },
  { title: 'REASON', of: ({ reason }) => reason },
  { title: 'EFFECT', of: effectText },
  { title: 'AGE', of: ({ intentAgeMs }) => (intentAgeMs === undefined ? null : roughly(intentAgeMs)), align: 'right' },
  { title: 'ATTEMPTS', of: ({ attempts }) => attempts, align: 'right' },
  { title: 'OLD OWNER', of: ownerText },
  { title: 'REVISION', of: ({ revision }) => revision, align: 'right' },
]

export function reviewListText(reviews: readonly AgedReview[]): string {
  return reviews.length === 0 ? 'nothing waits for a person' : table(columns, reviews)
}

function effectText({ effect, item }: Review): string | null {
  if (effect === undefined) return null
  return item === undefined ? effect : `${effect} (${item})`
}

function ownerText({ ownerGone }: Review): string | null {
  if (ownerGone === undefined) return null
  return ownerGone ? 'its call has ended' : 'may still call'
}

/** People compare hours and days here, not milliseconds. */
function roughly(ms: number): string {
  for (const unit of [86_400_000, 3_600_000, 60_000, 1_000]) {
    if (ms >= unit) return formatMs(Math.floor(ms / unit) * unit)
  }
  return formatMs(Math.floor(ms))
}

export interface ReviewEvidence {
  readonly review: Review
  readonly job: JobRecord
  readonly effects: readonly LedgerRecord[]
  readonly story: JobStory
  readonly nowMs: number
}

export function reviewValue({ review, effects, story, nowMs }: ReviewEvidence): object {
  return {
    review: aged(review, nowMs),
    effects: effects.map((row) => ({ ...row, input: jsonOrText(row.input), result: jsonOrText(row.result) })),
    job: storyValue(story),
  }
}

export function reviewText({ review, effects, story, nowMs }: ReviewEvidence): string {
  const calls = effects.map((row) => callText(row, nowMs))
  const recorded = calls.length === 0 ? 'recorded calls\n  none: the handler itself is in doubt' : calls.join('\n\n')
  return [headText(aged(review, nowMs)), recorded, storyText(story)].join('\n\n')
}

function headText(review: AgedReview): string {
  const { intentAgeMs } = review
  return fieldLines([
    ['review', review.id],
    ['revision', review.revision],
    ['reason', review.reason],
    ['says', review.message],
    ['in doubt', effectText(review) ?? 'whether the handler did its work'],
    ['since', intentAgeMs === undefined ? null : roughly(intentAgeMs)],
    ['old owner', ownerText(review)],
  ])
}

function callText(row: LedgerRecord, nowMs: number): string {
  const { kind, name, item, generation, failure } = row
  const title = `${kind} ${name}${item === '' ? '' : ` (${item})`}${generation === 1 ? '' : `, generation ${generation}`}`
  const age = roughly(Math.max(0, nowMs - row.openedAtMs))
  const fields = fieldLines([
    ['state', stateText(row)],
    ['provider', row.provider],
    ['provider key', row.providerKey ?? (kind === 'effect' || kind === 'compensation' ? 'none' : null)],
    ['intent', `${timeText(row.openedAtMs)} (${age} ago)`],
    ['ended', timeText(row.closedAtMs)],
    ['input', row.input],
    ['result', row.result],
    ['error', failure === null ? null : failureText(failure)],
    ['job', `${row.jobId}, attempt ${row.attempt}`],
    ['worker', row.workerId],
  ])
  const indented = fields.replace(/^/gm, '  ')
  return `${title}\n${indented}`
}

function stateText({ state, ownerGone, replayed }: LedgerRecord): string {
  switch (state) {
    case 'open':
      return ownerGone
        ? 'open: no outcome; its worker is proven dead, so no late call of it can arrive'
        : 'open: no outcome; its worker is not proven dead, so a late call of it may still arrive'
    case 'ambiguous':
      return `ambiguous: the call ended without telling what it did${replayed ? '; the provider repeats its stored error' : ''}`
    case 'not-executed':
      return 'not executed'
    case 'done':
      return 'done'
    case 'terminal':
      return 'terminal: declined for good'
    case 'superseded':
      return 'superseded: the same action as a later call'
    case 'abandoned':
      return 'abandoned'
  }
}
