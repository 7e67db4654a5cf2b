/** What a handler's ctx borrows from other stages: making children, completing in the handler's transaction. */
import { contractOf } from '../core/contract.ts'
import { ChokaQError } from '../core/errors.ts'
import type { ClientConfig } from '../core/config.ts'
import type { FetchedJob, NewJob } from '../core/job.ts'
import { checkResultSync } from '../core/preparation.ts'
import type { EnqueueVerdict, SettleAction, SettleVerdict } from '../core/storage.ts'
import type { OutcomeRequest } from './process/effect-recorder.ts'
import type { CtxServices } from './process/handler-ctx.ts'
import { prepareJob, prepareJobSync } from './enqueue/prepare-job.ts'
import { sentSync as sent } from './enqueue/sent-jobs.ts'
import { jsonTextFor, type WorkerCore } from './worker-core.ts'
import type { RegisteredType } from './worker-types.ts'

interface OfAttempt {
  readonly log: (message: string, fields: Readonly<Record<string, unknown>>) => void
  /** Outcomes of effects that are on their way; throws where an effect has not come back. */
  readonly outcomes: () => readonly OutcomeRequest[]
}

export function servicesFor(
  core: WorkerCore,
  job: FetchedJob,
  type: RegisteredType,
  { log, outcomes }: OfAttempt,
): Omit<CtxServices, 'effectScope' | 'enqueueChildIn' | 'completeIn' | 'checkpoints'> {
  const { driver, runtime, client, tracing } = core
  const jsonText = jsonTextFor(core)
  const resultText = (result: unknown): string => jsonText(result, `The result of "${job.type}"`)
  return {
    runtime,
    log,
    resultText,
    async prepareChild(child, payload, options, lineage) {
      const prepared = await prepareJob(contractOf(child), payload, inherit(options, job), client, runtime, lineage)
      const spare = lineage.id === undefined ? {} : { spareId: runtime.newId() }
      return sent(tracing, { ...prepared.row, ...spare }, (row) => row)
    },
    enqueueChildSync(tx, child, payload, options, lineage) {
      const { row } = prepareJobSync(contractOf(child), payload, inherit(options, job), client, runtime, lineage)
      const [verdict] = sent(tracing, row, (traced) => driver.enqueueSync(tx, [traced]))
      refuseUnstored(child.type, row.id, verdict)
    },
    completeSync(tx, result, children) {
      const text = checkResultSync(type.handler.contract, result, resultText)
      const action = completion(type, client, text, children)
      refuseUncompleted(job, driver.completeSync(tx, { lease: job.lease, outcomes: outcomes(), action }))
    },
  }
}

/** The action that completes a job from inside the handler's own transaction. */
export function completion(
  type: RegisteredType,
  client: ClientConfig,
  result: string | null,
  children: readonly NewJob[],
): Extract<SettleAction, { kind: 'complete' }> {
  return {
    kind: 'complete',
    result,
    markerLifeMs: type.policy.markerLifeMs,
    ...(type.handler.effects.size > 0 ? { guard: true as const } : {}),
    keep: type.handler.keepsCompleted ? { kind: 'full' } : { kind: 'stub', forMs: client.resendForMs },
    children,
  }
}

/** Throws into the handler's transaction, which rolls back with it. */
export function refuseUncompleted(job: FetchedJob, verdict: SettleVerdict): void {
  const { jobId } = job.lease
  if (verdict.kind === 'refused') throw verdict.error
  // The caller's transaction rolls back with this error, and the burial with it.
  if (verdict.kind === 'settled' && verdict.outcome === 'dead')
    throw new ChokaQError('CHOKAQ_COMPLETE_IN_DOUBT', { jobId })
  if (verdict.kind === 'lost' || verdict.outcome !== 'completed') throw new ChokaQError('CHOKAQ_LEASE_LOST', { jobId })
}

export function refuseUnstored(type: string, id: string, verdict: EnqueueVerdict | undefined): void {
  if (verdict?.kind === 'refused') throw verdict.error
  if (verdict?.kind === 'id-reused') throw new ChokaQError('CHOKAQ_CHILD_REUSED', { type, holderId: id })
  if (verdict?.kind === 'key-reused') {
    throw new ChokaQError('CHOKAQ_KEY_REUSED', { type, holderId: verdict.jobId, paths: [] })
  }
}

/** A child belongs to its parent's tenant. */
export function inherit<T extends object>(options: T, job: FetchedJob): T & { tenant?: string } {
  return job.tenant === undefined ? options : { ...options, tenant: job.tenant }
}
