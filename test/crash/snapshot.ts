// Everything the storage says of itself at the end of a run, read through the operators' side of the port.
import type { CounterRow } from '../../src/core/counters.ts'
import type { MarkerRow, QueueRow, WorkerRow } from '../../src/core/inspector.ts'
import type { JobRecord, Pillar } from '../../src/core/job.ts'
import type { StorageDriver } from '../../src/core/storage.ts'

export interface UserRow {
  readonly op: string
  readonly job: string
}

export interface Snapshot {
  /** All three pillars. An id that stood in two would be here twice. */
  readonly jobs: readonly JobRecord[]
  readonly stats: readonly CounterRow[]
  readonly queues: readonly QueueRow[]
  readonly workers: readonly WorkerRow[]
  readonly markers: readonly MarkerRow[]
  /** The application's own table, written in the transactions of handlers and producers. */
  readonly userRows: readonly UserRow[]
}

export async function readSnapshot(driver: StorageDriver, userRows: readonly UserRow[]): Promise<Snapshot> {
  const { inspector } = driver
  const jobs: JobRecord[] = []
  for (const pillar of ['hot', 'archive', 'dlq'] as const) jobs.push(...(await allOf(driver, pillar)))
  const hashes = new Set(jobs.flatMap(({ keyHash }) => keyHash ?? []))
  const markers = await Promise.all([...hashes].map((hash) => inspector.marker(hash)))
  return {
    jobs,
    stats: await inspector.stats(),
    queues: await inspector.queues(),
    workers: await inspector.workers(),
    markers: markers.filter((marker) => marker !== undefined),
    userRows,
  }
}

export async function allOf({ inspector }: StorageDriver, pillar: Pillar): Promise<readonly JobRecord[]> {
  const jobs: JobRecord[] = []
  let cursor: string | undefined
  do {
    const page = await inspector.list({ pillar, filter: {}, limit: 500, cursor })
    jobs.push(...page.jobs)
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return jobs
}
