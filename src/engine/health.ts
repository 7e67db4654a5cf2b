/**
 * Whether this process can do its work: the storage answers and has its tables, nothing waits for too long, and a
 * worker's loops turn. Probes, people and orchestrators ask it often, so it costs one cheap read at most.
 */
import { durationMs, type Duration } from '../core/duration.ts'
import { ChokaQError, hasCode } from '../core/errors.ts'
import type { QueueRow } from '../core/inspector.ts'
import type { Runtime, Scheduler } from '../core/runtime.ts'
import type { StorageDriver } from '../core/storage.ts'

export interface HealthOptions {
  /** How long the oldest due job may wait before the state is `degraded`. Defaults to 5 s. */
  degradedLag?: Duration
  /** How long before it is `unhealthy`. Defaults to 10 s. */
  unhealthyLag?: Duration
  /** How long the storage may take to answer. Defaults to 2 s. */
  timeout?: Duration
  /** Whose lag counts. Defaults to every queue, for a worker to those it serves. A paused queue never counts. */
  queues?: readonly string[]
}

export type HealthState = 'healthy' | 'degraded' | 'unhealthy'

export type HealthCheck = 'storage' | 'schema' | 'queue-lag' | 'worker' | 'beat' | 'fetch'

export interface HealthReason {
  readonly check: HealthCheck
  readonly state: 'degraded' | 'unhealthy'
  /** One sentence; it names queues and error codes, never hosts or paths. */
  readonly text: string
}

export interface Health {
  /** The worst state of its reasons. */
  readonly state: HealthState
  readonly reasons: readonly HealthReason[]
}

/** What a worker knows of its own loops. */
export interface WorkerVitals {
  readonly state: 'new' | 'starting' | 'running' | 'stopping' | 'stopped'
  /** Since the last beat that the storage confirmed was sent. */
  readonly sinceBeatMs: number
  /** Since the last fetch ended, either way; undefined while there is no room for more jobs or nothing was started. */
  readonly sinceFetchMs: number | undefined
  readonly heartbeatMs: number
  readonly fenceAfterMs: number
  /** The longest that a turn of the fetch loop takes by itself. */
  readonly fetchTurnMs: number
}

interface Parts {
  readonly driver: StorageDriver
  readonly runtime: Runtime
}

/** deadline.ts, lent by the caller: shared files of the engine do not know each other. */
type Deadline = <T>(scheduler: Scheduler, deadlineMs: number, what: string, call: Promise<T>) => Promise<T>

const second = 1_000
const maxLagReasons = 10
/** A loop that is this many turns late does not turn any more. */
const stuckTurns = 4

/** The storage and its queues. Never rejects for what it finds. @throws CHOKAQ_OPTION_INVALID */
export async function storageHealth(
  { driver, runtime }: Parts,
  withDeadline: Deadline,
  options: HealthOptions,
): Promise<Health> {
  const limits = limitsOf(options)
  try {
    const answer = driver.ready().then(() => driver.inspector.queues())
    const queues = await withDeadline(runtime.scheduler, limits.timeoutMs, 'health', answer)
    return healthOf(lagReasons(queues, limits, options.queues))
  } catch (error) {
    return healthOf([storageReason(error)])
  }
}

/** Of queues that were read already. @throws CHOKAQ_OPTION_INVALID */
export function queueHealth(queues: readonly QueueRow[], options: HealthOptions = {}): Health {
  return healthOf(lagReasons(queues, limitsOf(options), options.queues))
}

export function workerReasons(vitals: WorkerVitals): readonly HealthReason[] {
  const { state, sinceBeatMs, heartbeatMs, fenceAfterMs } = vitals
  if (state !== 'running') {
    const level = state === 'starting' ? 'degraded' : 'unhealthy'
    return [{ check: 'worker', state: level, text: `The worker is ${state}.` }]
  }
  const reasons: HealthReason[] = []
  if (sinceBeatMs > 2 * heartbeatMs) {
    const level = sinceBeatMs >= fenceAfterMs ? 'unhealthy' : 'degraded'
    reasons.push({ check: 'beat', state: level, text: `No heartbeat was confirmed for ${seconds(sinceBeatMs)}.` })
  }
  return [...reasons, ...fetchReasons(vitals)]
}

/** What only a restart of the process can change. The storage is no part of it: restarting helps no database. */
export function stuckReasons(vitals: WorkerVitals): readonly HealthReason[] {
  if (vitals.state === 'stopped') return [{ check: 'worker', state: 'unhealthy', text: 'The worker is stopped.' }]
  return fetchReasons(vitals).filter(({ state }) => state === 'unhealthy')
}

function fetchReasons({ sinceFetchMs, fetchTurnMs }: WorkerVitals): readonly HealthReason[] {
  if (sinceFetchMs === undefined || sinceFetchMs <= 2 * fetchTurnMs) return []
  const state = sinceFetchMs > stuckTurns * fetchTurnMs ? 'unhealthy' : 'degraded'
  return [{ check: 'fetch', state, text: `The worker has not looked for jobs for ${seconds(sinceFetchMs)}.` }]
}

export function healthOf(reasons: readonly HealthReason[]): Health {
  const worst = reasons.some(({ state }) => state === 'unhealthy') ? 'unhealthy' : 'degraded'
  return { state: reasons.length === 0 ? 'healthy' : worst, reasons }
}

interface Limits {
  readonly degradedMs: number
  readonly unhealthyMs: number
  readonly timeoutMs: number
}

function limitsOf({ degradedLag = '5s', unhealthyLag = '10s', timeout = '2s' }: HealthOptions): Limits {
  const bounds = { minMs: 1, maxMs: 2 ** 31 - 1 }
  const limits = {
    degradedMs: durationMs(degradedLag, 'degradedLag', bounds),
    unhealthyMs: durationMs(unhealthyLag, 'unhealthyLag', bounds),
    timeoutMs: durationMs(timeout, 'timeout', bounds),
  }
  if (limits.degradedMs <= limits.unhealthyMs) return limits
  throw new ChokaQError('CHOKAQ_OPTION_INVALID', {
    option: 'degradedLag',
    value: String(degradedLag),
    expected: `at most unhealthyLag (${String(unhealthyLag)})`,
  })
}

function lagReasons(
  queues: readonly QueueRow[],
  { degradedMs, unhealthyMs }: Limits,
  wanted: readonly string[] | undefined,
): readonly HealthReason[] {
  return queues
    .filter(({ name, paused }) => !paused && wanted?.includes(name) !== false)
    .map(({ name, lagMs }) => ({ name, lagMs: lagMs ?? 0 }))
    .filter(({ lagMs }) => lagMs >= degradedMs)
    .sort((a, b) => b.lagMs - a.lagMs)
    .slice(0, maxLagReasons)
    .map(({ name, lagMs }) => ({
      check: 'queue-lag',
      state: lagMs >= unhealthyMs ? 'unhealthy' : 'degraded',
      text: `A job of queue "${name}" has waited for ${seconds(lagMs)}.`,
    }))
}

function storageReason(error: unknown): HealthReason {
  const isSchema = hasCode(error, 'CHOKAQ_SCHEMA_MISSING') || hasCode(error, 'CHOKAQ_SCHEMA_NEWER')
  const code = error instanceof ChokaQError ? (error as ChokaQError).code : 'unknown'
  return isSchema
    ? { check: 'schema', state: 'unhealthy', text: `The tables are not those of this version: ${code}.` }
    : { check: 'storage', state: 'unhealthy', text: `The storage does not answer: ${code}.` }
}

function seconds(ms: number): string {
  return `${ms < 10 * second ? (ms / second).toFixed(1) : Math.round(ms / second)} s`
}
