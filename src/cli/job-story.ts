import { ChokaQError } from '../core/errors.ts'
import type { JobRecord } from '../core/job.ts'
import type { ChokaQ } from '../engine/enqueue/client.ts'
import { partsOf } from '../engine/parts.ts'
import type { JobStory } from './job-view.ts'

const maxDuplicates = 500

/** @throws CHOKAQ_JOB_NOT_FOUND */
export async function existingJob(chokaq: ChokaQ, id: string): Promise<JobRecord> {
  const job = await chokaq.jobs.get(id)
  if (job === undefined) throw new ChokaQError('CHOKAQ_JOB_NOT_FOUND', { id })
  return job
}

export async function storyOf(chokaq: ChokaQ, job: JobRecord): Promise<JobStory> {
  const { keyHash } = job
  if (keyHash === null) return { job, marker: undefined, duplicates: [] }
  const marker = await partsOf(chokaq).driver.inspector.marker(keyHash)
  const { jobs: duplicates } = await chokaq.jobs.list('archive', { duplicateOf: job.id, limit: maxDuplicates })
  return { job, marker, duplicates }
}
