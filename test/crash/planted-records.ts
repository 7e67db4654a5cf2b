// Job records for the checker's own tests.
import type { DeadReason, JobRecord } from '../../src/core/job.ts'

export function record(id: string, payload: object, what: Partial<JobRecord> = {}): JobRecord {
  return {
    id,
    pillar: 'archive',
    state: 'completed',
    type: 'crash.none.v1',
    queue: 'default',
    payload: JSON.stringify(payload),
    result: null,
    priority: 0,
    tags: [],
    tenant: null,
    keyHash: null,
    keyPrefix: null,
    keyScope: null,
    fingerprint: null,
    generation: 1,
    attempt: 1,
    failureCount: 0,
    crashCount: 0,
    fetchCrashCount: 0,
    token: 1,
    workerId: null,
    reason: null,
    failure: null,
    history: null,
    duplicateOf: null,
    parentId: null,
    traceContext: null,
    createdAtMs: 11,
    runAtMs: 11,
    fetchedAtMs: 21,
    startedAtMs: 21,
    firstStartedAtMs: 21,
    finishedAtMs: 32,
    cancelRequestedAtMs: null,
    revision: 0,
    inDoubt: false,
    ...what,
  }
}

export function done(id: string, payload: object): JobRecord {
  return record(id, payload)
}

export function dead(id: string, payload: object, reason: DeadReason): JobRecord {
  return record(id, payload, { pillar: 'dlq', state: 'dead', reason })
}
