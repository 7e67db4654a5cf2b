/** The times of the demo: the same arithmetic as in production, a few times faster. */

/** Worker options of the demo. A worker refuses to start if they break the rules: F ≤ D − H − D/30, 2(H + Q) ≤ F. */
export const leaseTimes = {
  heartbeat: 500,
  statementDeadline: 1_000,
  fenceAfter: 4_000,
  deadAfter: 5_000,
  sweep: 500,
  poll: 100,
  timeout: 30_000,
  abortGrace: 1_000,
  shutdownGrace: 5_000,
  killDeadline: 15_000,
} as const

/** The longest one call of a provider may take; what bounds how long a doubt about one can last. */
export const callTimeoutMs = 2_000

export const concurrency = 10
/** A job may be hit by each kill; a dead job would be the demo's fault and not the job's. */
export const crashBudget = 20

export const plannedKills = 8
export const minKills = 5
export const minChargeKills = 2

export const defaultDeliveries = 520
export const maxDeliveries = 20_000

/** How long deliveries are spread over: long enough for the kills between them. */
export function spreadMs(requestCount: number): number {
  return Math.max(plannedKills * 1_500, requestCount * 20)
}

/** A run that has not ended by then has failed. */
export function deadlineMs(requestCount: number): number {
  return 90_000 + requestCount * 100
}
