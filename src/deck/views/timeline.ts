/** One job's story, oldest first, from everything that was recorded of it. */
import { failureText, parseHistory } from '../../core/failure.ts'
import type { AuditRow } from '../../core/inspector.ts'
import type { JobRecord } from '../../core/job.ts'
import { compensateName, type LedgerRecord } from '../../core/ledger.ts'
import type { TimelineEntry } from '../wire-jobs.ts'
import type { Hide } from './job.ts'

type Entry = TimelineEntry

export interface Story {
  readonly job: JobRecord
  readonly effects: readonly LedgerRecord[]
  readonly duplicates: readonly JobRecord[]
  readonly audit: readonly AuditRow[]
}

export function timelineOf({ job, effects, duplicates, audit }: Story, hide: Hide): readonly TimelineEntry[] {
  const entries = [
    ...beginnings(job),
    ...attempts(job, hide),
    ...effects.flatMap((row) => calls(row, job.id, hide)),
    ...endings(job, hide),
    ...duplicates.map((each) => duplicate(each)),
    ...audit.map((row) => act(row, hide)),
  ]
  // A stable sort: what happened in one millisecond stays in the order it is told in.
  return entries.sort((a, b) => a.atMs - b.atMs)
}

function entry(
  atMs: number,
  kind: Entry['kind'],
  title: string,
  more: Partial<Pick<Entry, 'detail' | 'attempt' | 'tone'>> = {},
): Entry {
  return { atMs, kind, title, detail: null, attempt: null, tone: 'neutral', ...more }
}

function beginnings(job: JobRecord): readonly Entry[] {
  const { createdAtMs, runAtMs, parentId, cancelRequestedAtMs } = job
  const parent = parentId === null ? null : `by the handler of job ${parentId}`
  return [
    entry(createdAtMs, 'enqueued', `Enqueued into ${job.queue}`, { detail: parent }),
    ...(runAtMs > createdAtMs ? [entry(runAtMs, 'due', job.state === 'scheduled' ? 'Will be due' : 'Became due')] : []),
    ...(cancelRequestedAtMs === null
      ? []
      : [entry(cancelRequestedAtMs, 'cancel-requested', 'Cancel was asked for', { tone: 'warning' })]),
  ]
}

function attempts(job: JobRecord, hide: Hide): readonly Entry[] {
  const { firstStartedAtMs, startedAtMs, attempt, crashCount } = job
  const failures = parseHistory(job.history).map(({ atMs, attempt: number, kind, failure }) =>
    entry(atMs, isCrash(kind) ? 'crashed' : 'failed', `Attempt ${number} ${endText(kind)}`, {
      detail: hide(failureText(failure)),
      attempt: number,
      tone: isCrash(kind) ? 'warning' : 'bad',
    }),
  )
  const first =
    firstStartedAtMs === null || firstStartedAtMs === startedAtMs
      ? []
      : [entry(firstStartedAtMs, 'started', 'Started for the first time', { attempt: 1 })]
  const worker = job.workerId === null ? null : `on worker ${job.workerId}`
  const last =
    startedAtMs === null
      ? []
      : [entry(startedAtMs, 'started', `Attempt ${attempt} started`, { detail: worker, attempt })]
  const told = failures.filter(({ kind }) => kind === 'crashed').length
  const silent =
    crashCount > told
      ? [
          entry(startedAtMs ?? job.createdAtMs, 'crashed', `${crashCount - told} times its worker died`, {
            tone: 'warning',
            attempt,
          }),
        ]
      : []
  return [...first, ...silent, ...last, ...failures]
}

function isCrash(kind: string): boolean {
  return kind === 'crash'
}

function endText(kind: string): string {
  return kind === 'failed' ? 'failed' : `ended: ${kind}`
}

function calls(row: LedgerRecord, jobId: string, hide: Hide): readonly Entry[] {
  const what = row.item === '' ? row.name : `${row.name} (${hide(row.item)})`
  const of = row.jobId === jobId ? null : `by job ${row.jobId}`
  if (row.kind === 'memo' || row.kind === 'checkpoint') {
    const title =
      row.name === compensateName
        ? 'A person asked to undo its effects'
        : `${row.kind === 'memo' ? 'Remembered' : 'Committed'} ${what}`
    return [entry(row.openedAtMs, 'outcome', title, { detail: of, attempt: row.attempt, tone: 'good' })]
  }
  const verb = row.kind === 'compensation' ? 'Undoing' : 'About to call'
  const key = row.providerKey === null ? 'without a provider key' : `under provider key ${hide(row.providerKey)}`
  const intent = entry(row.openedAtMs, 'intent', `${verb} ${what}`, {
    detail: [of, key].filter((part) => part !== null).join(', '),
    attempt: row.attempt,
    tone: row.state === 'open' ? 'warning' : 'neutral',
  })
  if (row.closedAtMs === null) return [intent]
  return [
    intent,
    entry(row.closedAtMs, 'outcome', `${what}: ${outcomeText(row)}`, {
      detail: row.failure === null ? null : hide(failureText(row.failure)),
      attempt: row.attempt,
      tone: row.state === 'done' ? 'good' : row.state === 'ambiguous' || row.state === 'terminal' ? 'bad' : 'neutral',
    }),
  ]
}

function outcomeText({ state, replayed }: LedgerRecord): string {
  switch (state) {
    case 'open':
      return 'no outcome'
    case 'done':
      return 'done'
    case 'ambiguous':
      return `the call ended, its outcome is unknown${replayed ? '; the provider repeats its stored error' : ''}`
    case 'not-executed':
      return 'it did not happen'
    case 'terminal':
      return 'declined for good'
    case 'superseded':
      return 'the same action as a later call'
    case 'abandoned':
      return 'given up'
  }
}

function endings(job: JobRecord, hide: Hide): readonly Entry[] {
  const { finishedAtMs, pillar, state, reason } = job
  if (finishedAtMs === null) return []
  const detail = job.failure === null ? null : hide(failureText(job.failure))
  if (pillar === 'dlq') {
    const title = job.inDoubt ? `Parked for a person: ${reason ?? ''}` : `Dead: ${reason ?? ''}`
    return [entry(finishedAtMs, 'dead', title, { detail, attempt: job.attempt, tone: 'bad' })]
  }
  const titles: Readonly<Record<string, string>> = {
    completed: 'Completed',
    skipped: `Skipped: a duplicate of ${job.duplicateOf ?? 'another job'}`,
    cancelled: 'Cancelled',
  }
  const tone = state === 'completed' ? 'good' : 'neutral'
  return [entry(finishedAtMs, 'finished', titles[state] ?? state, { attempt: job.attempt, tone })]
}

function duplicate(job: JobRecord): Entry {
  const title = `Duplicate ${job.id} was ${job.pillar === 'dlq' ? `kept: ${job.reason ?? ''}` : job.state}`
  return entry(job.finishedAtMs ?? job.createdAtMs, 'duplicate', title)
}

function act(row: AuditRow, hide: Hide): Entry {
  const note = row.note === '' ? null : hide(row.note)
  return entry(row.atMs, 'operator', `${row.actor}: ${row.act}`, { detail: note })
}
