/**
 * From rows to the types of the port, for every database whose rows have the column names of the migrations. A driver
 * gives numbers for integers and null for what is absent.
 */
import { parseFailure, type StoredFailure } from '../core/failure.ts'
import type { ArchiveOutcome, DeadReason, FetchedJob, HotState, JobKey, JobRecord, Pillar } from '../core/job.ts'
import type { Lease } from '../core/lease.ts'

/** The columns that all three pillars have, under the same names. */
export const jobColumns = [
  'id',
  'type',
  'queue',
  'priority',
  'run_at',
  'token',
  'worker_id',
  'generation',
  'attempt',
  'failure_count',
  'crash_count',
  'fetch_crash_count',
  'revision',
  'created_at',
  'fetched_at',
  'started_at',
  'first_started_at',
  'cancel_requested_at',
  'tenant',
  'key_hash',
  'key_prefix',
  'key_scope',
  'key_computed',
  'fingerprint',
  'parent_id',
  'trace_context',
  'tags',
  'payload',
  'failure',
  'history',
] as const

export interface KeyColumns {
  readonly key_hash: string | null
  readonly key_prefix: string | null
  readonly key_scope: string | null
}

export interface JobRow extends KeyColumns {
  readonly id: string
  readonly type: string
  readonly queue: string
  readonly priority: number
  readonly run_at: number
  readonly token: number
  readonly worker_id: string | null
  readonly generation: number
  readonly attempt: number
  readonly failure_count: number
  readonly crash_count: number
  readonly fetch_crash_count: number
  readonly revision: number
  readonly created_at: number
  readonly fetched_at: number | null
  readonly started_at: number | null
  readonly first_started_at: number | null
  readonly cancel_requested_at: number | null
  readonly tenant: string | null
  readonly fingerprint: string | null
  readonly parent_id: string | null
  readonly trace_context: string | null
  readonly tags: string | null
  readonly payload: string | null
  readonly failure: string | null
  readonly history: string | null
  /** What only some pillars have. */
  readonly state?: HotState
  readonly outcome?: ArchiveOutcome
  readonly reason?: DeadReason
  readonly finished_at?: number
  readonly duplicate_of?: string | null
  readonly result?: string | null
  readonly in_doubt?: number
}

export function jobRecord(pillar: Pillar, row: JobRow): JobRecord {
  return {
    id: row.id,
    pillar,
    state: row.state ?? row.outcome ?? 'dead',
    type: row.type,
    queue: row.queue,
    payload: row.payload,
    result: row.result ?? null,
    priority: row.priority,
    tags: parseTags(row.tags),
    tenant: row.tenant,
    keyHash: row.key_hash,
    keyPrefix: row.key_prefix,
    keyScope: row.key_scope,
    fingerprint: row.fingerprint,
    generation: row.generation,
    attempt: row.attempt,
    failureCount: row.failure_count,
    crashCount: row.crash_count,
    fetchCrashCount: row.fetch_crash_count,
    token: row.token,
    workerId: row.worker_id,
    reason: row.reason ?? null,
    failure: failureOf(row.failure),
    history: row.history,
    duplicateOf: row.duplicate_of ?? null,
    parentId: row.parent_id,
    traceContext: row.trace_context,
    createdAtMs: row.created_at,
    runAtMs: row.run_at,
    fetchedAtMs: row.fetched_at,
    startedAtMs: row.started_at,
    firstStartedAtMs: row.first_started_at,
    finishedAtMs: row.finished_at ?? null,
    cancelRequestedAtMs: row.cancel_requested_at,
    revision: row.revision,
    inDoubt: row.in_doubt === 1,
  }
}

/** What fetch reads of a row. Null stands for what nearly all rows have, so that a driver need not send and parse it. */
export interface FetchableRow extends KeyColumns {
  readonly id: string
  readonly type: string
  readonly payload: string
  /** Null: 0. */
  readonly priority: number | null
  readonly tags: string | null
  readonly tenant: string | null
  readonly fingerprint: string | null
  /** Null: 1. */
  readonly generation: number | null
  /** Null: 0, as the three that follow. */
  readonly attempt: number | null
  readonly failure_count: number | null
  readonly crash_count: number | null
  readonly suspect: number | null
  readonly created_at: number
  /** Null: as created_at. */
  readonly run_at: number | null
  readonly first_started_at: number | null
  readonly trace_context: string | null
}

/** `startedAtMs` is set where the fetch itself started the job. */
export function fetchedJob(
  row: FetchableRow,
  queue: string,
  lease: Lease,
  startedAtMs: number | undefined,
): FetchedJob {
  const isStarted = startedAtMs !== undefined
  const attempt = row.attempt ?? 0
  return {
    lease,
    state: isStarted ? 'processing' : 'fetched',
    type: row.type,
    queue,
    payload: row.payload,
    priority: row.priority ?? 0,
    tags: parseTags(row.tags),
    tenant: row.tenant ?? undefined,
    key: keyOf(row),
    fingerprint: row.fingerprint ?? undefined,
    generation: row.generation ?? 1,
    attempt: isStarted ? attempt + 1 : attempt,
    failureCount: row.failure_count ?? 0,
    crashCount: row.crash_count ?? 0,
    suspect: row.suspect === 1,
    createdAtMs: row.created_at,
    runAtMs: row.run_at ?? row.created_at,
    firstStartedAtMs: row.first_started_at ?? startedAtMs,
    traceContext: row.trace_context ?? undefined,
  }
}

export function keyOf({ key_hash, key_prefix, key_scope }: KeyColumns): JobKey | undefined {
  if (key_hash === null) return undefined
  return { hash: key_hash, prefix: key_prefix ?? '', scope: key_scope ?? '' }
}

export function failureOf(text: string | null): StoredFailure | null {
  return text === null ? null : parseFailure(text)
}

const noTags: readonly string[] = []

export function parseTags(text: string | null): readonly string[] {
  return text === null ? noTags : parseTexts(text)
}

/** Null where there are none: most jobs have no tags. */
export function serializeTags(tags: readonly string[]): string | null {
  return tags.length === 0 ? null : JSON.stringify(tags)
}

/** A JSON array of texts, as this storage wrote it. */
export function parseTexts(text: string): readonly string[] {
  const value = JSON.parse(text) as unknown
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []
}
