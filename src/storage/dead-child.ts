/** How a child is kept that cannot be stored as what it is: it would be lost silently, so it waits for a person. */
import { ChokaQError } from '../core/errors.ts'
import { describeFailure, type StoredFailure } from '../core/failure.ts'
import type { NewJob } from '../core/job.ts'
import type { DeadChild, DeadOnArrival, EnqueueVerdict } from '../core/storage.ts'

/** Undefined where the child is stored, or left out because its work is done or being done. */
export function deadChild(child: NewJob, verdict: EnqueueVerdict): DeadOnArrival | undefined {
  switch (verdict.kind) {
    case 'key-reused': {
      const error = new ChokaQError('CHOKAQ_KEY_REUSED', { type: child.type, holderId: verdict.jobId, paths: [] })
      return { job: child, reason: 'KeyReused', failure: failureOf(error), duplicateOf: verdict.jobId }
    }
    case 'id-reused': {
      const error = new ChokaQError('CHOKAQ_CHILD_REUSED', { type: child.type, holderId: child.id })
      // Its own id is taken. Without a spare one nothing can be kept, and the completion must not pass for one.
      if (child.spareId === undefined) throw error
      return {
        job: { ...child, id: child.spareId },
        reason: 'KeyReused',
        failure: failureOf(error),
        duplicateOf: child.id,
      }
    }
    case 'refused':
      throw verdict.error
    default:
      return undefined
  }
}

/** What is told of it in the verdict of its parent's completion. */
export function deadChildNews({ job, failure }: DeadOnArrival): DeadChild {
  return { jobId: job.id, type: job.type, queue: job.queue, failure }
}

function failureOf(error: ChokaQError): StoredFailure {
  const { stack: _stack, ...failure } = describeFailure(error)
  return failure
}
