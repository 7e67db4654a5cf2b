/** Rows on their way to the storage, under the span of a tracer where there is one. */
import type { NewJob } from '../../core/job.ts'
import type { Sending, SentJobs, Tracing } from '../../core/tracing.ts'

/** Stores rows of one type in one call; `store` gets them with the context that travels with them. */
export async function sent<T>(
  tracing: Tracing,
  rows: readonly NewJob[],
  store: (rows: readonly NewJob[]) => Promise<T>,
): Promise<T> {
  const sending = begin(tracing, rows)
  if (sending === undefined) return store(rows)
  try {
    const stored = await store(rows.map((row) => ({ ...row, traceContext: sending.traceContext })))
    sending.end()
    return stored
  } catch (error) {
    sending.end(error)
    throw error
  }
}

/** As `sent`, for one row and where there is no time to wait. */
export function sentSync<T>(tracing: Tracing, row: NewJob, store: (row: NewJob) => T): T {
  const sending = begin(tracing, [row])
  if (sending === undefined) return store(row)
  try {
    const stored = store({ ...row, traceContext: sending.traceContext })
    sending.end()
    return stored
  } catch (error) {
    sending.end(error)
    throw error
  }
}

function begin({ tracer }: Tracing, rows: readonly NewJob[]): Sending | undefined {
  const [first, second] = rows
  if (tracer === undefined || first === undefined) return undefined
  const jobs: SentJobs = {
    queue: first.queue,
    type: first.type,
    jobId: second === undefined ? first.id : undefined,
    count: rows.length,
  }
  return tracer.send(jobs)
}
