/**
 * The counters of `stats_totals`. The storage adds to them in the transaction they count, so they are as true as the
 * rows; telemetry reads them as cluster totals.
 */
export const counterNames = [
  'jobs.enqueued',
  'jobs.deduplicated',
  'jobs.completed',
  'jobs.failed',
  'jobs.retried',
  'jobs.dlq',
  'jobs.skipped',
  'jobs.cancelled',
  'jobs.deferred',
  'jobs.rescued',
  'jobs.resurrected',
  'jobs.pruned',
  'jobs.purged',
  'idempotency.claims',
] as const
export type CounterName = (typeof counterNames)[number]

/** Counted beside them, for metric buckets only: run times and lags, labelled by their place among the bounds. */
export const histogramNames = ['duration', 'lag'] as const
export type HistogramName = (typeof histogramNames)[number]

/** The closed outcomes of `chokaq.idempotency.claims`. */
export const claimOutcomes = [
  'claimed',
  'completed',
  'completed_duplicate',
  'in_progress_duplicate',
  'released',
  'complete_conflict',
  'empty_key',
] as const
export type ClaimOutcome = (typeof claimOutcomes)[number]

export interface CounterRow {
  readonly name: CounterName
  readonly queue: string
  readonly type: string
  /** Reason or outcome; '' where the counter has none. */
  readonly label: string
  readonly value: number
}

/** What one transaction counts. */
export interface CountedRow extends Omit<CounterRow, 'name'> {
  readonly name: CounterName | HistogramName
}

/** Sums rows of one transaction before they are written, so that a batch costs one write per distinct counter. */
export class CounterSum {
  readonly #rows = new Map<string, CountedRow & { value: number }>()
  readonly #last = new Map<CountedRow['name'], CountedRow & { value: number }>()

  add(name: CountedRow['name'], job: { readonly queue: string; readonly type: string }, label = '', value = 1): void {
    const { queue, type } = job
    const last = this.#last.get(name)
    // Jobs of one batch are mostly alike.
    if (last !== undefined && last.label === label && last.type === type && last.queue === queue) {
      last.value += value
      return
    }
    const id = `${name}\n${queue}\n${type}\n${label}`
    const row = this.#rows.get(id) ?? { name, queue, type, label, value: 0 }
    row.value += value
    this.#rows.set(id, row)
    this.#last.set(name, row)
  }

  addRows(rows: readonly CountedRow[]): void {
    for (const row of rows) this.add(row.name, row, row.label, row.value)
  }

  /** Sorted, so that two writers lock counters in the same order. */
  rows(): readonly CountedRow[] {
    return [...this.#rows.entries()].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, row]) => row)
  }
}
