/**
 * One pure function per options object: defaults, checks, and a frozen result. docs/configuration.md lists the same
 * names and defaults; a test compares them.
 */
import { shortValue } from './describe-value.ts'
import { unknownKeyProblem } from './did-you-mean.ts'
import { durationMs, type Duration } from './duration.ts'
import { ChokaQError } from './errors.ts'

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour
const maxTimerMs = 2 ** 31 - 1

export interface ClientOptions {
  /** How long enqueue repeats a call whose reply is missing before it throws. Defaults to 30 s. */
  enqueueDeadline?: Duration
  /** The longest delay of a job. Defaults to 30 days. */
  maxDelay?: Duration
  /** How long an enqueue may be repeated with the same id even where history is dropped. Defaults to 1 hour. */
  resendFor?: Duration
  /** Largest payload, bytes of JSON. Defaults to 1,000,000. */
  maxPayloadBytes?: number
  /** Most payloads of one enqueueMany. Defaults to 10,000. */
  maxBatchCount?: number
}

export interface ClientConfig {
  readonly enqueueDeadlineMs: number
  readonly maxDelayMs: number
  readonly resendForMs: number
  readonly maxPayloadBytes: number
  readonly maxBatchCount: number
}

export interface WorkerOptions {
  /** Handlers running at once. Defaults to 10; 1 to 1,000. */
  concurrency?: number
  /** Jobs fetched ahead. Defaults to twice the concurrency, at most 500. */
  prefetch?: number
  /** Default timeout of one attempt. Defaults to 15 minutes. */
  timeout?: Duration
  /** How long an aborted handler may take to end before its slot is abandoned. Defaults to 3 s. */
  abortGrace?: Duration
  /** Defaults to 5 s. */
  heartbeat?: Duration
  /** Longest wait for one storage call. Defaults to 5 s. */
  statementDeadline?: Duration
  /** A worker that could not confirm a beat this long stops all it runs. Defaults to 20 s. */
  fenceAfter?: Duration
  /** A worker whose beat stands still this long is dead. Defaults to 30 s. */
  deadAfter?: Duration
  /** How often a worker looks for dead workers and old rows. Defaults to 5 s. */
  sweep?: Duration
  /** Longest wait between looks for work while idle. Defaults to 1 s. */
  poll?: Duration
  /** How long running handlers may finish at shutdown before they are aborted. Defaults to 20 s. */
  shutdownGrace?: Duration
  /** When the platform kills the process after asking it to stop; for the boot check. Defaults to 30 s. */
  killDeadline?: Duration
  /** Crashes of a started handler until the DLQ. Defaults to 2. */
  crashBudget?: number
  /** Crashes before the start until the DLQ. Defaults to 10. */
  fetchCrashBudget?: number
  /** Largest result, bytes of JSON. Defaults to 1,000,000. */
  maxResultBytes?: number
  /** How long finished jobs are kept. Defaults to 15 days. */
  archiveRetention?: Duration
  /** How long dead jobs are kept; those in doubt stay until resolved. Defaults to 14 days. */
  dlqRetention?: Duration
  /** Boot rules to waive, each with its reason. */
  waive?: Readonly<Record<string, string>>
}

export interface WorkerConfig {
  readonly concurrency: number
  readonly prefetch: number
  readonly timeoutMs: number
  readonly abortGraceMs: number
  readonly heartbeatMs: number
  readonly statementDeadlineMs: number
  readonly fenceAfterMs: number
  readonly deadAfterMs: number
  readonly sweepMs: number
  readonly pollMs: number
  readonly shutdownGraceMs: number
  readonly killDeadlineMs: number
  readonly crashBudget: number
  readonly fetchCrashBudget: number
  readonly maxResultBytes: number
  readonly archiveRetentionMs: number
  readonly dlqRetentionMs: number
  readonly waive: Readonly<Record<string, string>>
}

/** Defaults, in milliseconds and counts. */
export const clientDefaults: ClientConfig = Object.freeze({
  enqueueDeadlineMs: 30 * second,
  maxDelayMs: 30 * day,
  resendForMs: hour,
  maxPayloadBytes: 1_000_000,
  maxBatchCount: 10_000,
})

export const workerDefaults: Omit<WorkerConfig, 'prefetch' | 'waive'> = Object.freeze({
  concurrency: 10,
  timeoutMs: 15 * minute,
  abortGraceMs: 3 * second,
  heartbeatMs: 5 * second,
  statementDeadlineMs: 5 * second,
  fenceAfterMs: 20 * second,
  deadAfterMs: 30 * second,
  sweepMs: 5 * second,
  pollMs: second,
  shutdownGraceMs: 20 * second,
  killDeadlineMs: 30 * second,
  crashBudget: 2,
  fetchCrashBudget: 10,
  maxResultBytes: 1_000_000,
  archiveRetentionMs: 15 * day,
  dlqRetentionMs: 14 * day,
})

export const maxPrefetchCount = 500
export const maxConcurrency = 1_000

export const clientOptionNames = [
  'enqueueDeadline',
  'maxDelay',
  'resendFor',
  'maxPayloadBytes',
  'maxBatchCount',
] as const
export const workerOptionNames = [
  'concurrency',
  'prefetch',
  'timeout',
  'abortGrace',
  'heartbeat',
  'statementDeadline',
  'fenceAfter',
  'deadAfter',
  'sweep',
  'poll',
  'shutdownGrace',
  'killDeadline',
  'crashBudget',
  'fetchCrashBudget',
  'maxResultBytes',
  'archiveRetention',
  'dlqRetention',
  'waive',
] as const

/** Checks client options; `alsoKnown` are fields of the same object that another part reads. */
export function resolveClientConfig(input: ClientOptions, alsoKnown: readonly string[] = []): ClientConfig {
  refuseUnknown(input, [...clientOptionNames, ...alsoKnown], 'createChokaQ')
  return Object.freeze({
    enqueueDeadlineMs: time(input.enqueueDeadline, 'enqueueDeadline', clientDefaults.enqueueDeadlineMs),
    maxDelayMs: time(input.maxDelay, 'maxDelay', clientDefaults.maxDelayMs, Number.MAX_SAFE_INTEGER),
    resendForMs: time(input.resendFor, 'resendFor', clientDefaults.resendForMs, Number.MAX_SAFE_INTEGER),
    maxPayloadBytes: whole(input.maxPayloadBytes, 'maxPayloadBytes', clientDefaults.maxPayloadBytes, 1, 50_000_000),
    maxBatchCount: whole(input.maxBatchCount, 'maxBatchCount', clientDefaults.maxBatchCount, 1, 100_000),
  })
}

/** Checks worker options; `alsoKnown` are fields of the same object that another part reads. */
export function resolveWorkerConfig(input: WorkerOptions, alsoKnown: readonly string[] = []): WorkerConfig {
  refuseUnknown(input, [...workerOptionNames, ...alsoKnown], 'createWorker')
  const d = workerDefaults
  const concurrency = whole(input.concurrency, 'concurrency', d.concurrency, 1, maxConcurrency)
  const defaultPrefetch = Math.min(maxPrefetchCount, 2 * concurrency)
  return Object.freeze({
    concurrency,
    prefetch: whole(input.prefetch, 'prefetch', defaultPrefetch, 1, maxPrefetchCount),
    timeoutMs: time(input.timeout, 'timeout', d.timeoutMs),
    abortGraceMs: time(input.abortGrace, 'abortGrace', d.abortGraceMs),
    heartbeatMs: time(input.heartbeat, 'heartbeat', d.heartbeatMs),
    statementDeadlineMs: time(input.statementDeadline, 'statementDeadline', d.statementDeadlineMs),
    fenceAfterMs: time(input.fenceAfter, 'fenceAfter', d.fenceAfterMs),
    deadAfterMs: time(input.deadAfter, 'deadAfter', d.deadAfterMs),
    sweepMs: time(input.sweep, 'sweep', d.sweepMs),
    pollMs: time(input.poll, 'poll', d.pollMs),
    shutdownGraceMs: time(input.shutdownGrace, 'shutdownGrace', d.shutdownGraceMs, maxTimerMs, 0),
    killDeadlineMs: time(input.killDeadline, 'killDeadline', d.killDeadlineMs),
    crashBudget: whole(input.crashBudget, 'crashBudget', d.crashBudget, 0, 1_000),
    fetchCrashBudget: whole(input.fetchCrashBudget, 'fetchCrashBudget', d.fetchCrashBudget, 0, 1_000),
    maxResultBytes: whole(input.maxResultBytes, 'maxResultBytes', d.maxResultBytes, 1, 50_000_000),
    archiveRetentionMs: time(input.archiveRetention, 'archiveRetention', d.archiveRetentionMs, Number.MAX_SAFE_INTEGER),
    dlqRetentionMs: time(input.dlqRetention, 'dlqRetention', d.dlqRetentionMs, Number.MAX_SAFE_INTEGER),
    waive: Object.freeze({ ...input.waive }),
  })
}

function refuseUnknown(input: object, known: readonly string[], what: string): void {
  const problem = unknownKeyProblem(input, known, what)
  if (problem !== undefined) throw new ChokaQError('CHOKAQ_CONFIG_INVALID', { problem })
}

function time(value: Duration | undefined, name: string, standard: number, maxMs = maxTimerMs, minMs = 1): number {
  return value === undefined ? standard : durationMs(value, name, { minMs, maxMs })
}

/** A whole number in a range. */
export function whole(value: unknown, option: string, standard: number, min: number, max: number): number {
  if (value === undefined) return standard
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value
  throw new ChokaQError('CHOKAQ_OPTION_INVALID', {
    option,
    value: shortValue(value),
    expected: `a whole number from ${min} to ${max}`,
  })
}
