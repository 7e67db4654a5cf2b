// One valid owner at a time; an older one changes nothing; limits are counted over all owners.
import { ms, type Evidence, type Lease } from '../evidence.ts'

export const ownership = {
  /** A job is taken over only from an owner that settled, is gone, fenced itself, gave it back, or was silent. */
  I5(evidence: Evidence) {
    return pairs(evidence).flatMap(([older, newer]) => {
      const atMs = newer.claim.at
      if (hasEnded(older, atMs)) return []
      const silentMs = atMs - evidence.lastBeat(older.claim.workerId, atMs)
      // The observer's clock starts when it sees the beat; a tenth is for what lies between a beat and its line.
      if (silentMs >= 0.9 * evidence.rules.deadAfterMs) return []
      return [
        `job ${older.claim.job} was taken from ${older.claim.by}, which was alive (last beat ${ms(silentMs)} ago)`,
      ]
    })
  },

  /** Tokens only rise, and no settle of an older token is taken after a newer one was given. */
  I6(evidence: Evidence) {
    return pairs(evidence).flatMap(([older, newer]) => {
      const { job, fence } = older.claim
      if (newer.claim.fence <= fence) return [`job ${job} got token ${newer.claim.fence} after ${fence}`]
      const stale = evidence.of('ack.ok').find((ok) => ok.job === job && ok.fence === fence && ok.at > newer.claim.at)
      const call = stale && evidence.of('ack.call').find((line) => line.call === stale.call && line.job === job)
      if (stale === undefined || call === undefined || call.at < newer.claim.at) return []
      return [
        `job ${job} was settled (${stale.outcome}) with token ${fence} after token ${newer.claim.fence} was given`,
      ]
    })
  },

  /** No more live leases of a limited queue than its limit, at any time; what cannot be told counts as free. */
  I15(evidence: Evidence) {
    return evidence.of('limit').flatMap(({ queue, n, at }) => {
      const held = evidence.leases.filter(({ claim }) => claim.queue === queue && claim.at >= at)
      const steps = held.flatMap((lease) => [
        { at: lease.claim.at, by: 1 },
        { at: certainEnd(evidence, lease), by: -1 },
      ])
      let live = 0
      for (const step of steps.sort((a, b) => a.at - b.at || a.by - b.by)) {
        live += step.by
        if (live > n) return [`queue ${queue} has the limit ${n}, and ${live} of its jobs were owned at once`]
      }
      return []
    })
  },

  /** What a handler came to is recorded, or its owner was lost and the job went on without it. */
  I22(evidence: Evidence) {
    return evidence.runs.flatMap(({ begin, lease, endAtMs }) => {
      if (endAtMs === undefined || lease === undefined) return []
      if (lease.isTold || lease.goneAtMs < Infinity || lease.fencedAtMs < Infinity) return []
      return [`attempt ${begin.attempt} of job ${begin.job} ended, and nobody tried to record it`]
    })
  },

  /** A worker that lost its leases tells its handlers. That what they come to is refused is I6. */
  I24(evidence: Evidence) {
    const { toleranceMs, heartbeatMs } = evidence.rules
    const aborts = evidence.of('abort').filter(({ reason }) => reason === 'CHOKAQ_LEASE_LOST')
    return evidence.of('fenced').flatMap((fenced) => {
      const limitMs = fenced.at + heartbeatMs + toleranceMs
      const open = evidence.runs.filter(({ begin, lease, endAtMs }) => {
        const isOurs = lease?.claim.workerId === fenced.workerId && begin.at <= fenced.at
        return isOurs && (endAtMs ?? Infinity) > fenced.at && (lease?.goneAtMs ?? Infinity) > limitMs
      })
      return open.flatMap(({ begin, endAtMs }) => {
        const told = aborts.some((line) => line.pid === begin.pid && line.job === begin.job && line.at <= limitMs)
        return told || (endAtMs ?? Infinity) <= limitMs ? [] : [`job ${begin.job} was not told that its lease is lost`]
      })
    })
  },
}

/** Each lease of a job with the one that followed it. */
function pairs(evidence: Evidence): readonly (readonly [Lease, Lease])[] {
  return [...evidence.byJob.values()].flatMap((leases) =>
    leases.slice(1).map((newer, i) => [leases[i] as Lease, newer] as const),
  )
}

/** Whether a lease had ended by a moment, as far as its owner or its process says so. */
export function hasEnded({ settled, goneAtMs, fencedAtMs, disownedAtMs }: Lease, atMs: number): boolean {
  return Math.min(settled?.atMs ?? Infinity, goneAtMs, fencedAtMs, disownedAtMs) <= atMs
}

/** Up to here the lease was held for certain: a rescue or settle that ended it had not even been called. */
function certainEnd(evidence: Evidence, { claim, settled, disownedAtMs }: Lease): number {
  const rescued = evidence.of('rescued').find((line) => line.job === claim.job && line.workerId === claim.workerId)
  const rescue = rescued && evidence.of('rescue.call').find((line) => line.call === rescued.call)
  const next = evidence.byJob.get(claim.job)?.find((lease) => lease.claim.fence > claim.fence)
  const ends = [settled?.atMs, rescue?.at, next?.claim.at, disownedAtMs].map((at) => at ?? Infinity)
  const end = Math.min(...ends)
  return end === Infinity ? claim.at : end
}
