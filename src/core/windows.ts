/**
 * Boot arithmetic: whether the time windows of a worker and of a type fit together. What threatens safety refuses to
 * start, what threatens only liveness warns. docs/guarantees.md explains the letters; here each has its word.
 */
import { quoted } from './describe-value.ts'
import { suggestion } from './did-you-mean.ts'
import { formatMs } from './duration.ts'

/** All durations in milliseconds. */
export interface Windows {
  /** Δ: the longest delay a producer may ask for. */
  readonly maxDelayMs: number
  /** A: from the first start to the last possible start. */
  readonly retryLifetimeMs: number
  /** T: how long one attempt may run before its signal is aborted. */
  readonly timeoutMs: number
  /** G: how long an aborted attempt may take to end. */
  readonly graceMs: number
  /** H: time between two heartbeats. */
  readonly heartbeatMs: number
  /** D: silence after which a worker counts as dead. */
  readonly deadMs: number
  /** S: time between two sweeps. */
  readonly sweepMs: number
  /** Q: how long one statement may take. */
  readonly statementDeadlineMs: number
  /** F: how long after its last confirmed heartbeat a worker stops itself. */
  readonly fenceMs: number
  /** N: failures after which a job is buried. */
  readonly attempts: number
  /** C: crashes a job may survive. */
  readonly crashBudget: number
  /** R: how long dead jobs are kept. */
  readonly dlqRetentionMs: number
  /** How long finished jobs are kept. */
  readonly archiveRetentionMs: number
  /** U: how long duplicates of a key can arrive; 0 for a type without a key. */
  readonly duplicateWindowMs: number
  /** How long a producer may repeat an enqueue with the same id. */
  readonly resendForMs: number
  /** How long a worker that shuts down waits for its handlers. */
  readonly shutdownGraceMs: number
  /** When the platform kills a process that was asked to stop. */
  readonly killDeadlineMs: number
  /** Σ backoff: an upper bound of all waits between attempts. */
  readonly maxBackoffTotalMs: number
  /** Whether jobs of the type may be enqueued without its contract, so that the worker computes the key. */
  readonly allowRaw: boolean
  /** False under `keep: { completed: 0 }`, where only a stub stays for `resendFor`. */
  readonly keepsCompleted: boolean
}

export const windowRules = [
  'fence-before-dead',
  'beats-before-fence',
  'archive-outlives-resend',
  'backoff-fits-lifetime',
  'shutdown-before-kill',
  // of effects: see effect-windows.ts
  'window-over-margin',
  'settle-after-owner',
  'window-fits-lifetime',
] as const
export type WindowRule = (typeof windowRules)[number]

export interface WindowFinding {
  /** Stable: the name under which it is waived. A `WindowRule`, or 'waiver-unknown' and 'waiver-without-reason'. */
  readonly rule: string
  /** One sentence with its numbers. */
  readonly text: string
}

export interface WindowFindings {
  /** What threatens safety: do not start. */
  readonly refusals: readonly WindowFinding[]
  /** What threatens only liveness: start and say so. */
  readonly warnings: readonly WindowFinding[]
}

/** L, the life of a lease: from the first start of a job to the moment when no attempt of it can be running any more. */
export function leaseSpanMs(w: Windows): number {
  return w.retryLifetimeMs + w.timeoutMs + w.graceMs + w.deadMs + w.sweepMs
}

/** M: how long a key's marker must live, so that no duplicate, delayed or resurrected job outlives it. */
export function markerLifeMs(w: Windows): number {
  const span = leaseSpanMs(w)
  if (w.allowRaw) return w.duplicateWindowMs + w.maxDelayMs + 2 * span + w.dlqRetentionMs
  return Math.max(w.duplicateWindowMs, w.dlqRetentionMs, w.maxDelayMs) + span
}

/**
 * How long after its creation a dead job may be continued as the same operation: later its key's marker could have come
 * and gone, and nobody could tell.
 */
export function continueWithinMs(w: Windows): number {
  return w.maxDelayMs + 2 * leaseSpanMs(w) + w.dlqRetentionMs
}

interface Check {
  readonly rule: WindowRule
  readonly threatens: 'safety' | 'liveness'
  /** Written so that NaN does not hold. */
  readonly holds: (w: Windows) => boolean
  readonly text: (w: Windows) => string
}

/** A thirtieth of the dead time: the margin for a clock that runs fast. */
function latestFenceMs(w: Windows): number {
  return w.deadMs - w.heartbeatMs - w.deadMs / 30
}

function beatsMs(w: Windows): number {
  return 2 * (w.heartbeatMs + w.statementDeadlineMs)
}

function archiveNeedsMs(w: Windows): number {
  return Math.max(w.resendForMs, w.dlqRetentionMs + leaseSpanMs(w))
}

function longestLifeMs(w: Windows): number {
  const runs = (w.attempts + w.crashBudget) * (w.timeoutMs + w.graceMs)
  return w.maxBackoffTotalMs + runs + w.crashBudget * (w.deadMs + w.sweepMs)
}

function shutdownMs(w: Windows): number {
  return w.shutdownGraceMs + w.graceMs + w.statementDeadlineMs
}

const checks: readonly Check[] = [
  {
    rule: 'fence-before-dead',
    threatens: 'safety',
    holds: (w) => w.fenceMs <= latestFenceMs(w),
    text: (w) =>
      `the self-fence (${formatMs(w.fenceMs)}) must be at most ${formatMs(latestFenceMs(w))}: the dead time (${formatMs(w.deadMs)}) less a heartbeat (${formatMs(w.heartbeatMs)}) and a thirtieth of the dead time. Else a worker still runs handlers when others already take its jobs.`,
  },
  {
    rule: 'beats-before-fence',
    threatens: 'safety',
    holds: (w) => beatsMs(w) <= w.fenceMs,
    text: (w) =>
      `the self-fence (${formatMs(w.fenceMs)}) must be at least ${formatMs(beatsMs(w))}: two heartbeats (${formatMs(w.heartbeatMs)}) and their statements (${formatMs(w.statementDeadlineMs)} each). Else one slow heartbeat stops a healthy worker.`,
  },
  {
    rule: 'archive-outlives-resend',
    threatens: 'safety',
    holds: (w) => !w.keepsCompleted || w.archiveRetentionMs >= archiveNeedsMs(w),
    text: (w) =>
      `finished jobs are kept for ${formatMs(w.archiveRetentionMs)} and must be kept for ${formatMs(archiveNeedsMs(w))}: the longer of resendFor (${formatMs(w.resendForMs)}) and the DLQ retention (${formatMs(w.dlqRetentionMs)}) with the life of a lease (${formatMs(leaseSpanMs(w))}). Else a repeated enqueue runs a finished job again.`,
  },
  {
    rule: 'backoff-fits-lifetime',
    threatens: 'liveness',
    holds: (w) => longestLifeMs(w) <= w.retryLifetimeMs,
    text: (w) =>
      `a job that uses up all it may takes up to ${formatMs(longestLifeMs(w))}: waits of ${formatMs(w.maxBackoffTotalMs)} and ${w.attempts} attempts and ${w.crashBudget} crashes with a timeout of ${formatMs(w.timeoutMs)}; its retry lifetime ends after ${formatMs(w.retryLifetimeMs)}. Some of its attempts may never run.`,
  },
  {
    rule: 'shutdown-before-kill',
    threatens: 'liveness',
    holds: (w) => shutdownMs(w) < w.killDeadlineMs,
    text: (w) =>
      `a shutdown takes up to ${formatMs(shutdownMs(w))} (its grace of ${formatMs(w.shutdownGraceMs)}, the abort grace of ${formatMs(w.graceMs)} and a statement of ${formatMs(w.statementDeadlineMs)}), and the process is killed after ${formatMs(w.killDeadlineMs)}. Running handlers would count as crashed.`,
  },
]

/** Checks every rule. `scope` says where the settings belong, such as 'worker' or 'type mail.v1', and opens each text. */
export function checkWindows(w: Windows, scope: string): WindowFindings {
  const broken = checks.filter((check) => !check.holds(w))
  const findings = (threatens: Check['threatens']): readonly WindowFinding[] =>
    broken
      .filter((check) => check.threatens === threatens)
      .map(({ rule, text }) => ({ rule, text: `${scope}: ${text(w)}` }))
  return { refusals: findings('safety'), warnings: findings('liveness') }
}

/**
 * The findings under the user's waivers, rule name → reason. A waived refusal becomes a warning that carries the reason;
 * a waived warning stays one and carries it, too. A waiver that names no rule or gives no reason refuses on its own; one
 * for a rule that holds is allowed.
 */
export function applyWaivers(findings: WindowFindings, waive: Readonly<Record<string, string>>): WindowFindings {
  const reasons = new Map<string, string>()
  const problems: WindowFinding[] = []
  const rules: readonly string[] = windowRules
  for (const [rule, reason] of Object.entries<unknown>(waive)) {
    if (!rules.includes(rule)) {
      problems.push({
        rule: 'waiver-unknown',
        text: `waive names ${quoted(rule)}, which is no rule; ${suggestion(rule, windowRules)}`,
      })
    } else if (typeof reason !== 'string' || reason.trim() === '') {
      problems.push({
        rule: 'waiver-without-reason',
        text: `waive gives no reason for "${rule}"; write why it is safe here`,
      })
    } else reasons.set(rule, reason.trim())
  }
  const withReason = (finding: WindowFinding): WindowFinding => {
    const reason = reasons.get(finding.rule)
    return reason === undefined ? finding : { ...finding, text: `${finding.text} Waived: ${reason}` }
  }
  const waived = findings.refusals.filter(({ rule }) => reasons.has(rule))
  return {
    refusals: [...findings.refusals.filter(({ rule }) => !reasons.has(rule)), ...problems],
    warnings: [...waived, ...findings.warnings].map(withReason),
  }
}
