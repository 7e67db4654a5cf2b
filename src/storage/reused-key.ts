/** How a child is kept whose key is held for another payload. */
import { ChokaQError } from '../core/errors.ts'
import { describeFailure } from '../core/failure.ts'
import type { NewJob } from '../core/job.ts'
import type { DeadOnArrival } from '../core/storage.ts'

export function reusedKey(job: NewJob, holderId: string): DeadOnArrival {
  const { stack: _stack, ...failure } = describeFailure(
    new ChokaQError('CHOKAQ_KEY_REUSED', { type: job.type, holderId, paths: [] }),
  )
  return { job, reason: 'KeyReused', failure, duplicateOf: holderId }
}
