/** What `chokaq doctor` looks at, read with the same calls that everybody has. */
import { workerDefaults } from '../../core/config.ts'
import type { JobRecord } from '../../core/job.ts'
import type { JobTypeRow } from '../../core/registration.ts'
import type { QueueRow, SchemaState, Upkeep, WorkerRow } from '../../core/inspector.ts'
import type { ChokaQ } from '../../engine/enqueue/client.ts'

export interface DoctorFacts {
  readonly nowMs: number
  readonly queues: readonly QueueRow[]
  /** Those whose beat moved, or is young. */
  readonly liveWorkers: readonly WorkerRow[]
  readonly silentWorkers: readonly WorkerRow[]
  readonly types: readonly JobTypeRow[]
  /** Types with a due job that no live worker registered. */
  readonly waitingTypes: readonly { readonly type: string; readonly queue: string }[]
  /** The newest ones, at most 500. */
  readonly dead: readonly JobRecord[]
  /** At most 500. */
  readonly inReview: readonly JobRecord[]
  readonly schema: SchemaState
  readonly upkeep: Upkeep
  /** How far this machine's clock is behind the database's; negative where it is ahead. What the call took is allowed for. */
  readonly behindMs: number
}

const listLimit = 500
/** A page looks at 20,000 rows. */
const maxPages = 50

export async function readFacts(chokaq: ChokaQ, nowMs: () => number): Promise<DoctorFacts> {
  const before = new Map((await chokaq.insight.workers()).map(({ id, beat }) => [id, beat]))
  const queues = await chokaq.queues.list()
  const types = await chokaq.insight.jobTypes()
  const schema = await chokaq.insight.schema()
  const askedMs = nowMs()
  const upkeep = await chokaq.insight.upkeep()
  const behindMs = distance(upkeep.nowMs, askedMs, nowMs())
  const { jobs: dead } = await chokaq.dlq.list({ limit: listLimit })
  const { jobs: inReview } = await chokaq.dlq.list({ inReview: true, limit: listLimit })
  const enqueued = (await chokaq.insight.stats()).filter(({ name }) => name === 'jobs.enqueued')
  const everEnqueued = [...new Set(enqueued.map(({ type }) => type))]
  const workers = await chokaq.insight.workers()
  const isLive = ({ id, beat, beatAtMs }: WorkerRow): boolean =>
    beat > (before.get(id) ?? beat) || nowMs() - beatAtMs <= workerDefaults.deadAfterMs
  const liveWorkers = workers.filter(isLive)
  const served = new Set(liveWorkers.flatMap((worker) => worker.types))
  const waitingTypes: { type: string; queue: string }[] = []
  if (queues.some(({ pendingCount }) => pendingCount > 0)) {
    for (const type of everEnqueued.filter((each) => !served.has(each))) {
      const job = await firstWaiting(chokaq, type)
      if (job !== undefined) waitingTypes.push({ type, queue: job.queue })
    }
  }
  const silentWorkers = workers.filter((worker) => !isLive(worker))
  const lists = { queues, liveWorkers, silentWorkers, types, waitingTypes, dead, inReview }
  return { nowMs: nowMs(), ...lists, schema, upkeep, behindMs }
}

/** The database looked at its clock at some time between the two. */
function distance(theirsMs: number, fromMs: number, toMs: number): number {
  if (theirsMs > toMs) return theirsMs - toMs
  return theirsMs < fromMs ? theirsMs - fromMs : 0
}

async function firstWaiting(chokaq: ChokaQ, type: string): Promise<JobRecord | undefined> {
  let cursor: string | undefined
  for (let page = 0; page < maxPages; page += 1) {
    const found = await chokaq.jobs.list('hot', {
      type,
      state: 'pending',
      limit: 1,
      ...(cursor === undefined ? {} : { cursor }),
    })
    if (found.jobs.length > 0 || found.nextCursor === undefined) return found.jobs[0]
    cursor = found.nextCursor
  }
  return undefined
}
