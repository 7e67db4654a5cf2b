/** A job as people and machines read it. */
import { formatMs } from '../core/duration.ts'
import { failureText, parseHistory, type StoredFailure } from '../core/failure.ts'
import type { JobPage, MarkerRow } from '../core/inspector.ts'
import type { JobRecord } from '../core/job.ts'
import { fieldLines, table, type Column } from './table.ts'
import { oneLine, severalLines } from './terminal-text.ts'

const columns: readonly Column<JobRecord>[] = [
  { title: 'ID', of: (job) => job.id },
  { title: 'STATE', of: (job) => (job.inDoubt ? `${job.state} (in doubt)` : job.state) },
  { title: 'TYPE', of: (job) => job.type },
  { title: 'QUEUE', of: (job) => job.queue },
  { title: 'KEY', of: (job) => job.keyPrefix },
  { title: 'ATTEMPT', of: (job) => job.attempt, align: 'right' },
  { title: 'CREATED', of: (job) => timeText(job.createdAtMs) },
]

const deadColumns: readonly Column<JobRecord>[] = [
  ...columns.filter(({ title }) => title !== 'CREATED'),
  { title: 'REASON', of: (job) => job.reason },
  { title: 'DIED', of: (job) => timeText(job.finishedAtMs) },
  { title: 'FAILURE', of: (job) => (job.failure === null ? null : failureText(job.failure)) },
]

export function pageText(page: JobPage, pillar: 'hot' | 'archive' | 'dlq'): string {
  // A filter looks at a bounded number of rows, so an empty page may have a next one.
  const text = page.jobs.length === 0 ? 'no jobs' : table(pillar === 'dlq' ? deadColumns : columns, page.jobs)
  return page.nextCursor === undefined ? text : `${text}\n\nmore: --cursor ${oneLine(page.nextCursor)}`
}

export function timeText(ms: number | null): string | null {
  if (ms === null) return null
  const date = new Date(ms)
  return Number.isNaN(date.getTime()) ? String(ms) : date.toISOString()
}

/** Everything that is known of one job. */
export interface JobStory {
  readonly job: JobRecord
  readonly marker: MarkerRow | undefined
  /** Jobs that were skipped because of this one. */
  readonly duplicates: readonly JobRecord[]
}

export function storyValue({ job, marker, duplicates }: JobStory): object {
  return {
    ...job,
    payload: jsonOrText(job.payload),
    result: jsonOrText(job.result),
    history: parseHistory(job.history),
    marker: marker === undefined ? null : { ...marker, result: jsonOrText(marker.result) },
    duplicates: duplicates.map(({ id }) => id),
  }
}

/** A stored text is JSON; one that is none is shown as it is. */
export function jsonOrText(text: string | null): unknown {
  if (text === null) return null
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

export function storyText(story: JobStory): string {
  const { job } = story
  const sections = [
    headText(story),
    timesText(job),
    jsonSection('payload', job.payload),
    jsonSection('result', job.result),
    job.failure === null ? '' : `failure\n${indented(failureLines(job.failure))}`,
    historyText(job),
  ]
  return sections.filter((section) => section !== '').join('\n\n')
}

function headText({ job, marker, duplicates }: JobStory): string {
  return fieldLines([
    ['id', job.id],
    ['type', job.type],
    ['queue', job.queue],
    ['state', job.inDoubt ? `${job.state}, in doubt: only a review decision or a new operation ends it` : job.state],
    ['reason', job.reason],
    ['priority', job.priority],
    ['tags', job.tags.join(', ')],
    ['tenant', job.tenant],
    ['key', job.keyPrefix],
    ['key scope', job.keyScope],
    ['key hash', job.keyHash],
    ['fingerprint', job.fingerprint],
    ['generation', job.generation],
    ['marker', markerText(job, marker)],
    ['duplicate of', job.duplicateOf],
    ['duplicates', duplicates.map(({ id }) => id).join(', ')],
    ['parent', job.parentId],
    ['attempt', job.attempt],
    ['failures', job.failureCount],
    ['crashes', job.crashCount],
    ['fetch crashes', job.fetchCrashCount],
    ['worker', job.workerId],
    ['token', job.token],
    ['revision', job.revision],
  ])
}

function markerText(job: JobRecord, marker: MarkerRow | undefined): string | undefined {
  if (marker === undefined) return job.keyHash === null ? undefined : 'none'
  const until = marker.expiresAtMs === undefined ? 'without end' : `until ${timeText(marker.expiresAtMs)}`
  const owner = marker.jobId === job.id ? '' : ` of job ${marker.jobId}`
  return `${marker.state}${owner}, generation ${marker.generation}, ${until}`
}

function timesText(job: JobRecord): string {
  const { startedAtMs, finishedAtMs } = job
  return fieldLines([
    ['created', timeText(job.createdAtMs)],
    ['due', timeText(job.runAtMs)],
    ['fetched', timeText(job.fetchedAtMs)],
    ['first started', timeText(job.firstStartedAtMs)],
    ['started', timeText(startedAtMs)],
    ['finished', timeText(finishedAtMs)],
    ['cancel asked', timeText(job.cancelRequestedAtMs)],
    ['waited', startedAtMs === null ? null : formatMs(Math.max(0, startedAtMs - job.runAtMs))],
    ['ran', startedAtMs === null || finishedAtMs === null ? null : formatMs(finishedAtMs - startedAtMs)],
  ])
}

function jsonSection(title: string, text: string | null): string {
  if (text === null) return ''
  const value = jsonOrText(text)
  return `${title}\n${indented(typeof value === 'string' ? JSON.stringify(value) : JSON.stringify(value, null, 2))}`
}

function historyText(job: JobRecord): string {
  const entries = parseHistory(job.history)
  if (entries.length === 0) return ''
  const lines = entries.map(
    ({ attempt, atMs, kind, failure }) =>
      `attempt ${attempt}, ${timeText(atMs)}, ${oneLine(kind)}: ${oneLine(failureText(failure))}`,
  )
  return `history\n${indented(lines.join('\n'))}`
}

function failureLines({ stack, causes, ...failure }: StoredFailure): string {
  const below = (causes ?? []).map((cause) => `caused by ${failureText(cause)}`)
  // A stack repeats the message; its frames are what is missing.
  const frames = (stack ?? '').split('\n').filter((line) => /^\s+at /.test(line))
  return [failureText(failure), ...below, ...frames].join('\n')
}

/** Indented, so that no line of a payload or a stack passes for one of ours. */
function indented(text: string): string {
  return severalLines(text)
    .split('\n')
    .map((line) => `  ${line}`)
    .join('\n')
}
