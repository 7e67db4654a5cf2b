/** Which dead jobs a bulk act is about: ids, or everything that a filter finds. */
import type { JobRecord } from '../core/job.ts'
import type { ChokaQ } from '../engine/enqueue/client.ts'
import { CliError } from './cli-error.ts'
import { filterFrom, type DeadFilterFlags } from './job-filter.ts'

export interface SelectionFlags extends DeadFilterFlags {
  readonly all?: boolean
}

export interface DeadSelection {
  readonly ids: readonly string[]
  /** Dead jobs in doubt: only a review decision or a new operation ends them. */
  readonly inDoubtIds: readonly string[]
  /** Given by id, but not dead. */
  readonly missingIds: readonly string[]
}

const pageSize = 500

/** The ids are fixed here, so that what was counted and confirmed is what is acted on. */
export async function selectDead(
  chokaq: ChokaQ,
  ids: readonly string[],
  flags: SelectionFlags,
): Promise<DeadSelection> {
  checkSelection(ids, flags)
  const jobs: JobRecord[] = []
  const missingIds: string[] = []
  if (ids.length > 0) {
    for (const id of new Set(ids)) {
      const job = await chokaq.jobs.get(id)
      if (job?.pillar === 'dlq') jobs.push(job)
      else missingIds.push(id)
    }
  } else {
    let cursor: string | undefined
    do {
      const page = await chokaq.dlq.list({
        ...filterFrom(flags),
        limit: pageSize,
        ...(cursor === undefined ? {} : { cursor }),
      })
      jobs.push(...page.jobs)
      cursor = page.nextCursor
    } while (cursor !== undefined)
  }
  return {
    ids: jobs.filter((job) => !job.inDoubt).map(({ id }) => id),
    inDoubtIds: jobs.filter((job) => job.inDoubt).map(({ id }) => id),
    missingIds,
  }
}

function checkSelection(ids: readonly string[], flags: SelectionFlags): void {
  const hasFilter = Object.keys(filterFrom(flags)).length > 0
  const ways = [ids.length > 0, hasFilter, flags.all === true].filter(Boolean).length
  if (ways === 1) return
  throw new CliError(
    'CHOKAQ_CLI_USAGE',
    ways === 0
      ? 'Say which dead jobs: give ids, a filter such as --type, or --all.'
      : 'Give ids, or a filter, or --all; not two of them.',
  )
}
