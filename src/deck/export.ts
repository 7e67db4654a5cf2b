/** A list as a file, page by page while the client reads: at most 10,000 jobs, never more than a page in memory. */
import type { JobFilter } from '../core/inspector.ts'
import type { Pillar } from '../core/job.ts'
import type { Context } from './context.ts'
import { csvLine } from './csv.ts'
import { hiderOf, jobSummary, shownJob } from './views/job.ts'
import type { JobRecord } from '../core/job.ts'

export const maxExportedJobs = 10_000
const pageSize = 200

export type ExportFormat = 'csv' | 'jsonl'

const columns = [
  'id',
  'pillar',
  'state',
  'type',
  'queue',
  'key',
  'tags',
  'priority',
  'attempt',
  'failureCount',
  'crashCount',
  'reason',
  'inDoubt',
  'message',
  'createdAt',
  'runAt',
  'startedAt',
  'finishedAt',
  'payload',
  'result',
] as const

export function exportStream(
  context: Context,
  pillar: Pillar,
  filter: JobFilter,
  format: ExportFormat,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const lines = exportLines(context, pillar, filter, format)
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await lines.next()
          if (done === true) controller.close()
          else controller.enqueue(encoder.encode(value))
        } catch (error) {
          // The status went out long ago; a broken transfer is what tells the client that its file is not whole.
          context.config.onError(error)
          controller.error(error)
        }
      },
      async cancel() {
        await lines.return(undefined)
      },
    },
    { highWaterMark: 1 },
  )
}

async function* exportLines(
  { reads, config }: Context,
  pillar: Pillar,
  filter: JobFilter,
  format: ExportFormat,
): AsyncGenerator<string, undefined> {
  if (format === 'csv') yield csvLine(columns)
  let left = maxExportedJobs
  let cursor: string | undefined
  do {
    const page = await reads.list({ pillar, filter, limit: Math.min(pageSize, left), cursor })
    const lines = page.jobs.map((job) => exportLine(job, config.redaction, format))
    // An empty piece would be taken for the end by nobody, but it helps nobody either.
    if (lines.length > 0) yield lines.join('')
    left -= page.jobs.length
    cursor = page.nextCursor
  } while (cursor !== undefined && left > 0)
  return undefined
}

function exportLine(job: JobRecord, redaction: Context['config']['redaction'], format: ExportFormat): string {
  const summary = jobSummary(job, redaction)
  const shown = shownJob(job, redaction)
  const hide = hiderOf(shown.hidden)
  const { createdAtMs, runAtMs, startedAtMs, finishedAtMs, tags, ...rest } = summary
  const row = {
    ...rest,
    tags,
    createdAt: timeText(createdAtMs),
    runAt: timeText(runAtMs),
    startedAt: timeText(startedAtMs),
    finishedAt: timeText(finishedAtMs),
    payload: shown.payload,
    result: shown.result === null ? null : hide(shown.result),
  }
  if (format === 'jsonl') return `${JSON.stringify(row)}\n`
  return csvLine(columns.map((name) => (name === 'tags' ? tags.join(' ') : row[name])))
}

function timeText(ms: number | null): string | null {
  if (ms === null) return null
  const date = new Date(ms)
  return Number.isNaN(date.getTime()) ? String(ms) : date.toISOString()
}
