/** New jobs as one JSON text: the one kind of parameter that every driver binds alike. */
import type { NewJob } from '../../../core/job.ts'

export function rowsOf(jobs: readonly NewJob[]): string {
  return JSON.stringify(
    jobs.map((job, n) => ({
      n,
      id: job.id,
      type: job.type,
      queue: job.queue,
      priority: job.priority,
      wait: job.due.kind === 'in' ? Math.ceil(Math.max(0, job.due.delayMs)) : 0,
      due: job.due.kind === 'at' ? Math.ceil(job.due.atMs) : 0,
      tenant: job.tenant,
      key: job.key?.hash,
      key_prefix: job.key?.prefix,
      key_scope: job.key?.scope,
      fingerprint: job.fingerprint,
      parent_id: job.parentId,
      trace_context: job.traceContext,
      tags: job.tags.length === 0 ? undefined : job.tags,
      payload: job.payload,
    })),
  )
}

export const incomingColumns = `n integer, id uuid, type text, queue text, priority bigint, wait bigint, due bigint, tenant text,
  key text, key_prefix text, key_scope text, fingerprint text, parent_id uuid, trace_context text, tags text[],
  payload text`
