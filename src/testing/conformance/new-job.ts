/** Builders with defaults, so that a case says only what it is about. */
import { fingerprintOf } from '../../core/canonical-json.ts'
import { keyHash, keyPrefix } from '../../core/key-canon.ts'
import type { JobKey, NewJob } from '../../core/job.ts'
import type { Runtime } from '../../core/runtime.ts'
import type { TypePolicy } from '../../core/storage.ts'

export const second = 1000
export const minute = 60 * second
export const hour = 60 * minute
export const day = 24 * hour

/** A job without a key that is due at once. */
export function newJob(runtime: Runtime, overrides: Partial<NewJob> = {}): NewJob {
  return {
    id: runtime.newId(),
    type: 'mail.send.v1',
    queue: 'default',
    payload: '{"to":"ada"}',
    priority: 0,
    due: { kind: 'now' },
    tenant: undefined,
    key: undefined,
    fingerprint: undefined,
    tags: [],
    traceContext: undefined,
    mayExist: false,
    parentId: undefined,
    ...overrides,
  }
}

/** A job with a business key. What it `says` is its payload, and the fingerprint is taken of that. */
export function keyedJob(runtime: Runtime, key: string, overrides: Partial<NewJob> & { says?: unknown } = {}): NewJob {
  const { says = { amount: 1 }, ...rest } = overrides
  return newJob(runtime, {
    type: 'payment.capture.v1',
    payload: JSON.stringify(says),
    key: keyOf(runtime, key),
    fingerprint: fingerprint(runtime, says),
    ...rest,
  })
}

export function keyOf(runtime: Runtime, key: string, scope = 'payment.capture'): JobKey {
  return { hash: keyHash({ scope, key }, (text) => runtime.sha256(text)), prefix: keyPrefix(key), scope }
}

export function fingerprint(runtime: Runtime, value: unknown): string {
  return fingerprintOf(value, (text) => runtime.sha256(text))
}

/** The answers of `newJob`'s type: no key, resumes, and takes the start gate. */
export function policy(overrides: Partial<TypePolicy> = {}): TypePolicy {
  return {
    type: 'mail.send.v1',
    keyed: false,
    fastStart: false,
    whenInterrupted: 'resume',
    crashBudget: 2,
    fetchCrashBudget: 10,
    retryLifetimeMs: 20 * hour,
    timeoutMs: 15 * minute,
    markerLifeMs: 60 * day,
    ...overrides,
  }
}

/** The answers of `keyedJob`'s type. */
export function keyedPolicy(overrides: Partial<TypePolicy> = {}): TypePolicy {
  return policy({ type: 'payment.capture.v1', keyed: true, ...overrides })
}
