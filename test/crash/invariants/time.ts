// Never early, never forgotten, taken back in time, stopped when asked.
import { groupBy, ms, type Evidence } from '../evidence.ts'
import type { LineOf } from '../history.ts'

/** Clocks of two processes and the rounding of stored times. */
const clockMs = 5

export const time = {
  /** What a dead worker held is taken back in time, counted from when another worker was there to do it. */
  I10(evidence: Evidence) {
    const limitMs = evidence.rules.recoveryMs + evidence.rules.toleranceMs
    return recoveries(evidence).flatMap(({ job, tookMs }) =>
      tookMs > limitMs ? [`job ${job} was taken back ${ms(tookMs)} after its worker died`] : [],
    )
  },

  /** Nothing starts before its time: neither a delayed job nor a retry. */
  I11(evidence: Evidence) {
    const first = new Map<string, LineOf<'run.begin'>>()
    for (const begin of evidence.of('run.begin')) if (!first.has(begin.hash)) first.set(begin.hash, begin)
    const delayed = evidence.of('enq.call').flatMap(({ op, hash, at, delayMs }) => {
      const begin = first.get(hash)
      if (begin === undefined || delayMs === 0 || begin.at >= at + delayMs - clockMs) return []
      return [`${op} started ${ms(at + delayMs - begin.at)} early`]
    })
    // Of a call that was repeated the first counts: it may be the one that was committed.
    const calls = [...groupBy(evidence.of('ack.call'), ({ job, fence }) => `${job}/${fence}`).values()]
    const retried = calls.flatMap(([first]) => {
      if (first === undefined) return []
      const { job, at, delayMs, fence } = first
      if (delayMs === null) return []
      const next = evidence.byJob.get(job)?.find(({ claim }) => claim.fence > fence)
      if (next === undefined || next.claim.at >= at + delayMs - clockMs) return []
      // A settle that was refused moved nothing.
      const taken = evidence.of('ack.ok').some((ok) => ok.job === job && ok.fence === fence && ok.outcome === 'retried')
      return taken ? [`the retry of job ${job} started ${ms(at + delayMs - next.claim.at)} early`] : []
    })
    return [...delayed, ...retried]
  },

  /** In the quiet tail, with a free slot, a job starts at once. */
  I12(evidence: Evidence) {
    const quietAtMs = evidence.of('quiet')[0]?.at ?? Infinity
    const limitMs = evidence.rules.startMs + evidence.rules.toleranceMs
    return evidence
      .of('enq.ok')
      .filter(({ at, outcome }) => at > quietAtMs && outcome === 'enqueued')
      .flatMap(({ op, job, at }) => {
        const begin = evidence.of('run.begin').find((line) => line.job === job)
        if (begin === undefined) return [`${op} never started`]
        return begin.at - at > limitMs ? [`${op} started after ${ms(begin.at - at)}`] : []
      })
  },

  /** No start after a cancel, no fetch while paused, and a running handler hears of its cancel within a beat. */
  I23(evidence: Evidence) {
    return [...cancelled(evidence), ...paused(evidence)]
  },

  /** A worker that is asked to stop is gone in time, with code 0, and owns nothing. */
  I25(evidence: Evidence) {
    const { toleranceMs } = evidence.rules
    return evidence.of('stop.call').flatMap(({ target, graceMs, at }) => {
      const exit = evidence.of('exit').find((line) => line.target === target)
      if (exit === undefined) return [`process ${target} was asked to stop and is still there`]
      const killed = evidence.of('kill').some((line) => line.target === target)
      if (killed) return []
      const limitMs = graceMs + 1_000 + toleranceMs
      const workers = new Set(evidence.of('up').flatMap((line) => (line.pid === target ? (line.workerId ?? []) : [])))
      const owned = evidence.snapshot.jobs.filter(
        ({ pillar, workerId }) => pillar === 'hot' && workers.has(workerId ?? ''),
      )
      return [
        ...(exit.at - at > limitMs ? [`process ${target} took ${ms(exit.at - at)} to stop`] : []),
        ...(exit.code === 0 ? [] : [`process ${target} stopped with ${exit.code ?? exit.signal}`]),
        ...owned.map(({ id }) => `job ${id} is still owned by process ${target}, which has stopped`),
      ]
    })
  },
}

/** From the death of an owner, or the start of the first worker after it, to whatever took the job back. */
export function recoveries(evidence: Evidence): readonly { readonly job: string; readonly tookMs: number }[] {
  const ups = evidence.of('up').filter(({ role }) => role === 'worker')
  return evidence.leases.flatMap(({ claim, settled, goneAtMs, fencedAtMs, disownedAtMs }) => {
    if (goneAtMs === Infinity || Math.min(settled?.atMs ?? Infinity, fencedAtMs, disownedAtMs) < goneAtMs) return []
    const back = takenBackAt(evidence, claim)
    if (back === undefined) return []
    // Counted from when a worker that lived until then was there.
    const rescuer = ups.find((up) => up.pid !== claim.pid && evidence.goneAt(up.pid) >= back)
    return [{ job: claim.job, tookMs: back - Math.max(goneAtMs, rescuer?.at ?? goneAtMs) }]
  })
}

function takenBackAt(evidence: Evidence, claim: LineOf<'claim'>): number | undefined {
  const rescued = evidence.of('rescued').find(({ job, workerId }) => job === claim.job && workerId === claim.workerId)
  const next = evidence.byJob.get(claim.job)?.find((lease) => lease.claim.fence > claim.fence)
  const times = [rescued?.at, next?.claim.at].filter((at) => at !== undefined)
  return times.length === 0 ? undefined : Math.min(...times)
}

function cancelled(evidence: Evidence): readonly string[] {
  const limitMs = evidence.rules.heartbeatMs + evidence.rules.toleranceMs
  const aborts = evidence.of('abort')
  return evidence.of('cancel.ok').flatMap(({ job, verdict, at }) => {
    const runs = evidence.runs.filter(({ begin }) => begin.job === job)
    if (verdict === 'cancelled') {
      const late = runs.filter(({ begin }) => begin.at > at)
      return late.map(({ begin }) => `job ${job} started (attempt ${begin.attempt}) after its cancel`)
    }
    return runs
      .filter(({ begin, endAtMs, lease }) => begin.at < at && (endAtMs ?? lease?.goneAtMs ?? Infinity) > at + limitMs)
      .filter(
        ({ begin }) => !aborts.some((line) => line.job === job && line.pid === begin.pid && line.at <= at + limitMs),
      )
      .map(() => `the running handler of job ${job} did not hear of its cancel`)
  })
}

function paused(evidence: Evidence): readonly string[] {
  const fetches = new Map(evidence.of('fetch.call').map((line) => [line.call, line]))
  return evidence.of('pause.ok').flatMap(({ queue, at }) => {
    const resumedAtMs = evidence.of('resume.call').find((line) => line.queue === queue && line.at > at)?.at ?? Infinity
    return evidence
      .of('claim')
      .filter((claim) => claim.queue === queue)
      .filter(({ call }) => {
        const calledAtMs = fetches.get(call)?.at ?? -Infinity
        return calledAtMs > at && calledAtMs < resumedAtMs
      })
      .map(({ job }) => `job ${job} was fetched while queue ${queue} was paused`)
  })
}
