/** Whether code under test enqueued what it should have. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { Job, PayloadIn } from '../core/contract.ts'
import type { JobRecord, Pillar } from '../core/job.ts'
import { parseJson } from '../core/json-image.ts'
import type { ChokaQ } from '../engine/enqueue/client.ts'
import { TestingError } from './testing-error.ts'

type DeepPartial<T> = T extends readonly unknown[] ? T : T extends object ? { [K in keyof T]?: DeepPartial<T[K]> } : T

const pillars: readonly Pillar[] = ['hot', 'archive', 'dlq']
const maxShownCount = 5
const pageSize = 500

/**
 * Asserts that a job of this contract was enqueued, wherever it is by now, and gives its record. `payload` names the
 * members that matter; the stored JSON may hold more. Lists compare as wholes.
 *
 * @example
 * await signUp({ email: 'ada@example.org' })
 * await assertEnqueued(chokaq, sendWelcome, { email: 'ada@example.org' })
 */
export async function assertEnqueued<S extends StandardSchemaV1, R>(
  chokaq: ChokaQ,
  job: Job<S, R>,
  payload?: DeepPartial<PayloadIn<S>>,
): Promise<JobRecord> {
  const seen: string[] = []
  for (const pillar of pillars) {
    for await (const record of all(chokaq, pillar, job.type)) {
      if (payload === undefined) return record
      if (record.payload !== null && contains(parseJson(record.payload), payload)) return record
      seen.push(record.payload ?? '(no longer kept)')
    }
  }
  const wanted = payload === undefined ? '' : ` with ${JSON.stringify(payload)}`
  const shown = seen.slice(0, maxShownCount).map((text) => `\n  ${text}`)
  const found = seen.length === 0 ? 'There is none of this type' : `Found ${seen.length} of this type:${shown.join('')}`
  throw new TestingError(`No job of type "${job.type}" was enqueued${wanted}. ${found}`)
}

async function* all(chokaq: ChokaQ, pillar: Pillar, type: string): AsyncGenerator<JobRecord> {
  let cursor: string | undefined
  do {
    const page = await chokaq.jobs.list(pillar, { type, limit: pageSize, ...(cursor === undefined ? {} : { cursor }) })
    yield* page.jobs
    cursor = page.nextCursor
  } while (cursor !== undefined)
}

/** Whether every member of `wanted` is in `found` with an equal value. */
function contains(found: unknown, wanted: unknown): boolean {
  if (typeof wanted !== 'object' || wanted === null) return Object.is(found, wanted)
  if (typeof found !== 'object' || found === null) return false
  if (Array.isArray(wanted)) {
    return (
      Array.isArray(found) && found.length === wanted.length && wanted.every((each, at) => contains(found[at], each))
    )
  }
  return Object.entries(wanted as Record<string, unknown>).every(
    ([name, value]) => Object.hasOwn(found, name) && contains((found as Record<string, unknown>)[name], value),
  )
}
