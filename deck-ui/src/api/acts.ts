/** What a person can do, one function per address. */
import type { QueueChangeRequest, QueueView } from '../../../src/deck/wire.ts'
import type {
  ActAnswer,
  ActRequest,
  BulkAnswer,
  BulkRunRequest,
  JobFilterView,
  PayloadCheck,
  PillarView,
  ResurrectActRequest,
  ReviewActRequest,
  ReviewAnswer,
} from '../../../src/deck/wire-jobs.ts'
import { address, postJson, send } from './request.ts'

const jobPath = (id: string): string => `api/jobs/${encodeURIComponent(id)}`

export type SimpleAct = 'cancel' | 'retry-now' | 'purge'

export function actOnJob(id: string, act: SimpleAct, request: ActRequest): Promise<ActAnswer> {
  return postJson(`${jobPath(id)}/${act}`, request)
}

export function resurrectJob(id: string, request: ResurrectActRequest): Promise<ActAnswer> {
  return postJson(`${jobPath(id)}/resurrect`, request)
}

export function checkPayload(id: string, payload: string): Promise<PayloadCheck> {
  return postJson(`${jobPath(id)}/check-payload`, { payload })
}

export function changeQueue(name: string, request: QueueChangeRequest): Promise<{ readonly queue: QueueView }> {
  return postJson(`api/queues/${encodeURIComponent(name)}`, request)
}

export function runBulk(request: BulkRunRequest): Promise<BulkAnswer> {
  return postJson('api/bulk/run', request)
}

export type Decision = 'adopt' | 'retry' | 'abandon' | 'compensate'

export function decideReview(id: string, decision: Decision, request: ReviewActRequest): Promise<ReviewAnswer> {
  return postJson(`api/reviews/${encodeURIComponent(id)}/${decision}`, request)
}

/** Fetched and handed over as a file: a plain link could not carry the authorization header. */
export async function saveExport(pillar: PillarView, filter: JobFilterView, format: 'csv' | 'jsonl'): Promise<void> {
  const response = await send(address('api/export', { pillar, ...filter, format }), {})
  const url = URL.createObjectURL(await response.blob())
  const link = document.createElement('a')
  link.href = url
  link.download = `chokaq-${pillar}.${format}`
  link.click()
  URL.revokeObjectURL(url)
}
