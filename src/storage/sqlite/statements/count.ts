/** Counters: into the totals and into the buckets of metrics, in the transaction that they count. */
import type { CountedRow } from '../../../core/counters.ts'
import { metricBucketMs } from '../../../core/metrics.ts'
import type { Session } from '../session.ts'

const addTotal = `INSERT INTO chokaq_stats_totals (name, queue, type, label, value) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (name, queue, type, label) DO UPDATE SET value = value + excluded.value`
const addRecent = `INSERT INTO chokaq_metric_recent (at, queue, type, name, label, value) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (at, queue, type, name, label) DO UPDATE SET value = value + excluded.value`

export function addCounters(session: Session, rows: readonly CountedRow[], nowMs: number): void {
  if (rows.length === 0) return
  const total = session.statement(addTotal)
  const recent = session.statement(addRecent)
  const atMs = Math.floor(nowMs / metricBucketMs) * metricBucketMs
  for (const { name, queue, type, label, value } of rows) {
    if (name !== 'duration' && name !== 'lag') total.run(name, queue, type, label, value)
    recent.run(atMs, queue, type, name, label, value)
  }
}
