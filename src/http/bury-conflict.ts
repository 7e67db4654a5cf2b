import type { JobContract } from '../core/contract.ts'
import type { ChokaQError } from '../core/errors.ts'
import { describeFailure } from '../core/failure.ts'
import { withDeadline } from '../engine/deadline.ts'
import { prepareJob } from '../engine/enqueue/prepare-job.ts'
import type { ChokaQParts } from '../engine/parts.ts'

/**
 * Keeps a delivery whose key is held by another payload: one dead row per key and fingerprint, for a person to look at.
 * Returns the id of the row, undefined where the same conflict is kept already.
 */
export async function buryConflict(
  parts: ChokaQParts,
  contract: JobContract,
  payload: unknown,
  conflict: ChokaQError<'CHOKAQ_KEY_REUSED'>,
): Promise<string | undefined> {
  const { driver, runtime, config } = parts
  const { row } = await prepareJob(contract, payload, {}, config, runtime)
  const buried = driver.buryOnArrival({
    job: row,
    reason: 'KeyReused',
    failure: describeFailure(conflict),
    duplicateOf: conflict.details.holderId,
  })
  const isNew = await withDeadline(runtime.scheduler, config.enqueueDeadlineMs, 'buryOnArrival', buried)
  return isNew ? row.id : undefined
}
