/** Workers and queues. A worker is silent when its beat is older than what makes others take its jobs back. */
import { workerDefaults } from '../../core/config.ts'
import type { QueueRow, WorkerRow } from '../../core/inspector.ts'
import type { QueueView, WorkerView } from '../wire.ts'

export function isSilent({ beatAtMs }: WorkerRow, nowMs: number): boolean {
  return nowMs - beatAtMs > workerDefaults.deadAfterMs
}

export function workerView(row: WorkerRow, nowMs: number): WorkerView {
  return {
    id: row.id,
    name: row.name,
    host: row.identity.host,
    pid: row.identity.pid,
    queues: row.queues,
    types: row.types,
    concurrency: row.concurrency,
    runningCount: row.runningCount,
    bufferedCount: row.bufferedCount,
    startedAtMs: row.startedAtMs,
    beatAtMs: row.beatAtMs,
    state: isSilent(row, nowMs) ? 'silent' : 'alive',
  }
}

export function queueView(row: QueueRow, of: { readonly served: boolean; readonly ratePerSecond: number }): QueueView {
  return {
    name: row.name,
    paused: row.paused,
    maxConcurrency: row.maxConcurrency ?? null,
    scheduledCount: row.scheduledCount,
    pendingCount: row.pendingCount,
    fetchedCount: row.fetchedCount,
    processingCount: row.processingCount,
    deadCount: row.deadCount,
    lagMs: row.lagMs ?? null,
    ...of,
  }
}
