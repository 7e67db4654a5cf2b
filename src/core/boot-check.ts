/**
 * What a worker checks before it starts: its own windows once, and those of every handler. The same function serves
 * `chokaq config check`, so that a deployment learns of a refusal before it is one.
 */
import type { ClientConfig, WorkerConfig } from './config.ts'
import { checkEffectWindows } from './effect-windows.ts'
import type { ResolvedHandler } from './handler.ts'
import { defaultRetryPolicy, maxTotalBackoffMs, type RetryPolicy } from './retry-policy.ts'
import type { TypePolicy } from './storage.ts'
import {
  applyWaivers,
  checkWindows,
  markerLifeMs,
  type WindowFinding,
  type WindowFindings,
  type WindowRule,
  type Windows,
} from './windows.ts'

/** Rules about settings of the worker alone: broken once, not once for each handler. */
const workerRules: ReadonlySet<string> = new Set<WindowRule>([
  'fence-before-dead',
  'beats-before-fence',
  'shutdown-before-kill',
])

/** What the arithmetic needs of one type. */
interface TypeSettings {
  readonly retry: RetryPolicy
  readonly timeoutMs: number | undefined
  readonly duplicateWindowMs: number
  readonly allowRaw: boolean
  readonly keepsCompleted: boolean
}

/** Stands in where only the worker's own rules are asked; no value of it reaches a finding. */
const anyType: TypeSettings = {
  retry: defaultRetryPolicy,
  timeoutMs: undefined,
  duplicateWindowMs: 0,
  allowRaw: false,
  keepsCompleted: true,
}

/** Refusals stop a worker from starting; warnings are said and lived with. Waivers of the worker are applied. */
export function checkBoot(
  handlers: readonly ResolvedHandler[],
  worker: WorkerConfig,
  client: ClientConfig,
): { readonly refusals: readonly WindowFinding[]; readonly warnings: readonly WindowFinding[] } {
  const ofWorker = only(checkWindows(windowsFrom(anyType, worker, client), 'worker'), (rule) => workerRules.has(rule))
  const ofTypes = handlers.flatMap((handler) => {
    const windows = windowsOf(handler, worker, client)
    const scope = `type ${handler.contract.type}`
    const ofEffects = Array.from(handler.effects.values(), (effect) => checkEffectWindows(effect, windows, scope))
    return [only(checkWindows(windows, scope), (rule) => !workerRules.has(rule)), ...ofEffects]
  })
  const all = [ofWorker, ...ofTypes]
  return applyWaivers(
    { refusals: all.flatMap((each) => each.refusals), warnings: all.flatMap((each) => each.warnings) },
    worker.waive,
  )
}

function only(findings: WindowFindings, wanted: (rule: string) => boolean): WindowFindings {
  return {
    refusals: findings.refusals.filter(({ rule }) => wanted(rule)),
    warnings: findings.warnings.filter(({ rule }) => wanted(rule)),
  }
}

/** All windows that concern a type under this worker and client. */
export function windowsOf(handler: ResolvedHandler, worker: WorkerConfig, client: ClientConfig): Windows {
  const { retry, timeoutMs, keepsCompleted, contract } = handler
  const { duplicateWindowMs, allowRaw } = contract
  return windowsFrom({ retry, timeoutMs, keepsCompleted, duplicateWindowMs, allowRaw }, worker, client)
}

function windowsFrom(type: TypeSettings, worker: WorkerConfig, client: ClientConfig): Windows {
  return {
    maxDelayMs: client.maxDelayMs,
    retryLifetimeMs: type.retry.lifetimeMs,
    timeoutMs: type.timeoutMs ?? worker.timeoutMs,
    graceMs: worker.abortGraceMs,
    heartbeatMs: worker.heartbeatMs,
    deadMs: worker.deadAfterMs,
    sweepMs: worker.sweepMs,
    statementDeadlineMs: worker.statementDeadlineMs,
    fenceMs: worker.fenceAfterMs,
    attempts: type.retry.attempts,
    crashBudget: worker.crashBudget,
    dlqRetentionMs: worker.dlqRetentionMs,
    archiveRetentionMs: worker.archiveRetentionMs,
    duplicateWindowMs: type.duplicateWindowMs,
    resendForMs: client.resendForMs,
    shutdownGraceMs: worker.shutdownGraceMs,
    killDeadlineMs: worker.killDeadlineMs,
    maxBackoffTotalMs: maxTotalBackoffMs(type.retry),
    allowRaw: type.allowRaw,
    keepsCompleted: type.keepsCompleted,
  }
}

/** What the storage must know of a type to fetch, start and rescue its jobs. */
export function policyFor(handler: ResolvedHandler, worker: WorkerConfig, client: ClientConfig): TypePolicy {
  const windows = windowsOf(handler, worker, client)
  return Object.freeze({
    type: handler.contract.type,
    keyed: handler.contract.key !== 'none',
    fastStart: handler.whenInterrupted === 'resume',
    whenInterrupted: handler.whenInterrupted,
    crashBudget: worker.crashBudget,
    fetchCrashBudget: worker.fetchCrashBudget,
    retryLifetimeMs: windows.retryLifetimeMs,
    timeoutMs: windows.timeoutMs,
    markerLifeMs: markerLifeMs(windows),
  })
}
