/** A job as lists and its own page show it, without what is redacted. */
import { failureText, parseHistory, type StoredFailure } from '../../core/failure.ts'
import type { JobRecord } from '../../core/job.ts'
import type { LedgerRecord } from '../../core/ledger.ts'
import { hiddenValues, hideValues, type Redaction } from '../redact.ts'
import type { AuditView } from '../wire.ts'
import type { EffectView, ErrorView, JobDetail, JobSummary } from '../wire-jobs.ts'
import type { AuditRow } from '../../core/inspector.ts'

const maxShownBytes = 256_000

/** Takes what is hidden in a job out of every text beside it. */
export type Hide = (text: string) => string

/** The payload and the result as they may be shown, and the hidden values of both. */
export interface ShownJob {
  readonly payload: string | null
  readonly result: string | null
  readonly hidden: readonly string[]
}

export function shownJob(job: JobRecord, redaction: Redaction): ShownJob {
  const { type } = job
  const payload = job.payload === null ? null : redaction.json(job.payload, { type, what: 'payload' })
  const result = job.result === null ? null : redaction.json(job.result, { type, what: 'result' })
  return {
    payload: payload?.text ?? null,
    result: result?.text ?? null,
    hidden: hiddenValues(payload?.hidden ?? [], result?.hidden ?? []),
  }
}

export function hiderOf(hidden: readonly string[]): Hide {
  return hidden.length === 0 ? (text) => text : (text) => hideValues(text, hidden)
}

export function jobSummary(job: JobRecord, redaction: Redaction): JobSummary {
  return summaryWith(job, hiderOf(redaction.isEmpty ? [] : shownJob(job, redaction).hidden))
}

function summaryWith(job: JobRecord, hide: Hide): JobSummary {
  return {
    id: job.id,
    pillar: job.pillar,
    state: job.state,
    type: job.type,
    queue: job.queue,
    key: job.keyPrefix === null ? null : hide(job.keyPrefix),
    tags: job.tags.map(hide),
    priority: job.priority,
    attempt: job.attempt,
    failureCount: job.failureCount,
    crashCount: job.crashCount,
    reason: job.reason,
    inDoubt: job.inDoubt,
    message: job.failure === null ? null : hide(failureText(job.failure)),
    createdAtMs: job.createdAtMs,
    runAtMs: job.runAtMs,
    startedAtMs: job.startedAtMs,
    finishedAtMs: job.finishedAtMs,
  }
}

export function jobOfDetail(job: JobRecord, shown: ShownJob, hide: Hide): JobDetail['job'] {
  const { text, isCut } = cut(shown.payload)
  return {
    ...summaryWith(job, hide),
    tenant: job.tenant,
    keyHash: job.keyHash,
    keyScope: job.keyScope,
    generation: job.generation,
    revision: job.revision,
    workerId: job.workerId,
    parentId: job.parentId,
    duplicateOf: job.duplicateOf,
    traceId: traceIdOf(job.traceContext),
    payload: text,
    payloadIsCut: isCut,
    result: cut(shown.result).text,
  }
}

function cut(text: string | null): { readonly text: string | null; readonly isCut: boolean } {
  if (text === null || text.length <= maxShownBytes) return { text, isCut: false }
  return { text: text.slice(0, maxShownBytes), isCut: true }
}

/** Of a W3C traceparent. */
function traceIdOf(context: string | null): string | null {
  return /^[\da-f]{2}-([\da-f]{32})-/.exec(context ?? '')?.[1] ?? null
}

/** Newest first: the last failure in full, and what the history kept of those before it. */
export function errorViews(job: JobRecord, hide: Hide): readonly ErrorView[] {
  const entries = [...parseHistory(job.history)].reverse()
  const before = entries.map(({ failure, atMs, attempt }) => errorView(failure, hide, { atMs, attempt }))
  const [newest] = entries
  const isTold = job.failure === null || (newest !== undefined && newest.failure.message === job.failure.message)
  if (job.failure === null || isTold) return before
  return [errorView(job.failure, hide, { atMs: job.finishedAtMs, attempt: job.attempt }), ...before]
}

export function errorView(
  failure: StoredFailure,
  hide: Hide,
  { atMs, attempt }: { readonly atMs: number | null; readonly attempt: number | null },
): ErrorView {
  const { name, message, code, stack, causes } = failure
  const below = (causes ?? []).map((cause) => `caused by ${failureText(cause)}`)
  const whole = [stack, ...below].filter((part) => part !== undefined).join('\n')
  return {
    name: hide(name),
    message: hide(message),
    code: code ?? null,
    stack: whole === '' ? null : hide(whole),
    atMs,
    attempt,
  }
}

export interface ShownEffect {
  readonly row: LedgerRecord
  readonly input: string
  readonly result: string | null
  readonly hidden: readonly string[]
}

export function shownEffect(row: LedgerRecord, type: string, redaction: Redaction): ShownEffect {
  const input = redaction.json(row.input, { type, what: 'input' })
  const result = row.result === null ? null : redaction.json(row.result, { type, what: 'result' })
  return {
    row,
    input: input.text,
    result: result?.text ?? null,
    hidden: hiddenValues(input.hidden, result?.hidden ?? []),
  }
}

export function effectView({ row, input, result }: ShownEffect, hide: Hide): EffectView {
  return {
    id: row.id,
    kind: row.kind,
    name: row.name,
    item: hide(row.item),
    state: row.state,
    provider: row.provider,
    providerKey: row.providerKey === null ? null : hide(row.providerKey),
    generation: row.generation,
    attempt: row.attempt,
    workerId: row.workerId,
    openedAtMs: row.openedAtMs,
    closedAtMs: row.closedAtMs,
    input: cut(input).text ?? '',
    result: cut(result).text,
    error: row.failure === null ? null : errorView(row.failure, hide, { atMs: row.closedAtMs, attempt: row.attempt }),
    ownerGone: row.ownerGone,
    replayed: row.replayed,
  }
}

export function auditView(row: AuditRow, redaction: Redaction, hide: Hide): AuditView {
  const detail = redaction.json(row.detail, { type: '', what: 'detail' })
  const hideAll: Hide = (text) => hide(hideValues(text, detail.hidden))
  return {
    id: row.id,
    atMs: row.atMs,
    actor: row.actor,
    act: row.act,
    subject: hideAll(row.subject),
    note: hideAll(row.note),
    detail: hideAll(detail.text),
  }
}
