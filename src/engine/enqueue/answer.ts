/** What enqueue answers: the storage's verdict in the words of the producer. */
import { differingPaths } from '../../core/canonical-json.ts'
import type { JobContract, Stored } from '../../core/contract.ts'
import { ChokaQError, unreachable } from '../../core/errors.ts'
import { parseJson } from '../../core/json-image.ts'
import { readPayload, whatMustBeSame } from '../../core/preparation.ts'
import type { EnqueueVerdict } from '../../core/storage.ts'
import type { PreparedJob } from './prepare-job.ts'

export type EnqueueResult<R> =
  | { readonly outcome: 'enqueued'; readonly id: string }
  /** The key is held: `id` names the job that holds it. */
  | { readonly outcome: 'already-active' | 'already-in-review' | 'already-compensated'; readonly id: string }
  | {
      readonly outcome: 'already-failed'
      readonly id: string
      readonly error: { readonly message: string; readonly code?: string }
    }
  | { readonly outcome: 'already-completed'; readonly id: string; readonly result: Stored<R> }

/** @throws CHOKAQ_KEY_REUSED, CHOKAQ_ID_REUSED, or the error of a refused row */
export function answerFor<R>(contract: JobContract, prepared: PreparedJob, verdict: EnqueueVerdict): EnqueueResult<R> {
  switch (verdict.kind) {
    case 'inserted':
    case 'resent':
      return { outcome: 'enqueued', id: prepared.row.id }
    case 'active':
      return { outcome: 'already-active', id: verdict.jobId }
    case 'in-review':
      return { outcome: 'already-in-review', id: verdict.jobId }
    case 'compensated':
      return { outcome: 'already-compensated', id: verdict.jobId }
    case 'completed':
      return {
        outcome: 'already-completed',
        id: verdict.jobId,
        result: (verdict.result === null ? null : parseJson(verdict.result)) as Stored<R>,
      }
    case 'failed': {
      const { message, code } = verdict.failure
      return {
        outcome: 'already-failed',
        id: verdict.jobId,
        error: code === undefined ? { message } : { message, code },
      }
    }
    case 'key-reused':
      throw new ChokaQError('CHOKAQ_KEY_REUSED', {
        type: contract.type,
        holderId: verdict.jobId,
        paths: pathsBetween(contract, prepared, verdict.holderPayload),
      })
    case 'id-reused':
      throw new ChokaQError('CHOKAQ_ID_REUSED', { id: prepared.row.id })
    case 'refused':
      throw verdict.error
    default:
      return unreachable(verdict, 'enqueue verdict')
  }
}

/** Paths, never values: the message may reach a log, and payloads hold personal data. */
function pathsBetween(contract: JobContract, prepared: PreparedJob, holderPayload: string | null): readonly string[] {
  if (holderPayload === null) return []
  try {
    const holder = readPayload(contract, holderPayload)
    if (holder instanceof Promise) {
      holder.catch(() => undefined)
      return []
    }
    return differingPaths(whatMustBeSame(contract, prepared.payload), whatMustBeSame(contract, holder))
  } catch {
    // The holder's payload may be of an older schema; the refusal stands without the paths.
    return []
  }
}
