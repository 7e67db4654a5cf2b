/** Gathers what accounting.ts compares: from the database, the provider's files, and the logs of sender and killer. */
import { existsSync, readFileSync } from 'node:fs'
import { parseHistory } from '../../core/failure.ts'
import type { JobRecord, Pillar } from '../../core/job.ts'
import type { ChokaQ } from '../../engine/enqueue/client.ts'
import { partsOf } from '../../engine/parts.ts'
import type { Interruption, JobFact, KillFact } from './accounting.ts'
import type { Kill } from './killer.ts'
import { chargeDelivery, upsertOrder } from './jobs.ts'
import { paymentErrorCodes } from './payment-client.ts'
import type { RequestRecord } from './provider/server.ts'
import type { RunningHandler } from './worker-place.ts'

const pillars: readonly Pillar[] = ['hot', 'archive', 'dlq']
const pageSize = 500

/** What took a job back from a dead worker, as the worker that did it told the parent. */
export interface Rescue {
  readonly jobId: string
  readonly workerId: string
  readonly atMs: number
}

export async function readJobs(chokaq: ChokaQ): Promise<readonly JobFact[]> {
  const { inspector } = partsOf(chokaq).driver
  const facts: JobFact[] = []
  for (const pillar of pillars) {
    let cursor: string | undefined
    do {
      const page = await chokaq.jobs.list(pillar, { limit: pageSize, ...(cursor === undefined ? {} : { cursor }) })
      for (const job of page.jobs) {
        const calls = job.type === chargeDelivery.type ? await inspector.effects(job.id) : []
        facts.push(factOf(job, calls.filter(({ jobId }) => jobId === job.id).length))
      }
      cursor = page.nextCursor
    } while (cursor !== undefined)
  }
  return facts
}

function factOf(job: JobRecord, callCount: number): JobFact {
  const payload = JSON.parse(job.payload ?? '{}') as { readonly paymentAttemptId?: string }
  return {
    id: job.id,
    kind: kindOf(job.type),
    state: job.state,
    reason: job.reason,
    paymentAttemptId: payload.paymentAttemptId ?? '',
    attempt: job.attempt,
    callCount,
    causes: parseHistory(job.history).map(({ kind, failure }) => causeText(kind, failure.code)),
  }
}

export function kindOf(type: string): 'charge' | 'order' {
  return type === upsertOrder.type ? 'order' : 'charge'
}

/** Why an attempt was followed by another. */
export const causes = {
  killed: 'worker killed',
  serverError: 'provider answered 500',
  connectionCut: 'connection cut',
  keyInUse: 'provider answered 409',
  waiting: 'waited for the bank',
  review: 'waited for a person',
} as const

function causeText(kind: string, code: string | undefined): string {
  if (kind === 'crash') return causes.killed
  if (code === 'CHOKAQ_EFFECT_WAITING') return causes.waiting
  if (code === 'CHOKAQ_EFFECT_IN_DOUBT') return causes.review
  if (kind === 'retry-after') return causes.keyInUse
  if (code === paymentErrorCodes.serverError) return causes.serverError
  if (code === paymentErrorCodes.connectionCut) return causes.connectionCut
  return code === undefined ? kind : `${kind}: ${code}`
}

export function readRequests(path: string): readonly RequestRecord[] {
  if (!existsSync(path)) return []
  const lines = readFileSync(path, 'utf8').split('\n')
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as RequestRecord)
}

export function killFacts(
  kills: readonly Kill[],
  requests: readonly RequestRecord[],
  rescues: readonly Rescue[],
): readonly KillFact[] {
  return kills.map(({ worker, workerId, atMs, interrupted }) => {
    const hungUp = requests.filter((request) => request.worker === worker && (request.goneAtMs ?? 0) >= atMs)
    const first = rescues.find((rescue) => rescue.workerId === workerId)
    return {
      worker,
      interruptions: interrupted.map(interruptionOf),
      chargesInFlight: hungUp.length,
      rescuedAfterMs: first === undefined ? null : first.atMs - atMs,
    }
  })
}

function interruptionOf({ jobId, type, attempt }: RunningHandler): Interruption {
  return { jobId, kind: kindOf(type), attempt }
}
