import type { Overview, Series } from '../../../../src/deck/wire.ts'
import { countText } from '../../text/duration.ts'

interface CrashLedgerProps {
  readonly sums: Overview['sums']
  readonly claims: readonly Series[]
  readonly reviewCount: number
}

/** What happened in the range, and what crashes cost: one line of figures that tell a story together. */
export function CrashLedger({ sums, claims, reviewCount }: CrashLedgerProps) {
  const stopped = sums.deduplicated + totalOf(claims, 'completed_duplicate') + totalOf(claims, 'in_progress_duplicate')
  return (
    <dl className="ledger">
      <Entry value={sums.completed} name="completed" />
      <Entry value={sums.failed} name="failed attempts" says={`${countText(sums.retried)} tried again`} />
      <Entry value={sums.rescued} name="crashes rescued" says="from dead workers" tone="run" />
      <Entry value={stopped} name="duplicates stopped" says="before a handler ran" tone="good" />
      <Entry value={reviewCount} name="in doubt now" says="not repeated blindly" tone="doubt" />
      <Entry value={sums.dead} name="died" says="in the DLQ" tone={sums.dead > 0 ? 'bad' : undefined} />
    </dl>
  )
}

function totalOf(claims: readonly Series[], outcome: string): number {
  const values = claims.find(({ label }) => label === outcome)?.values ?? []
  return values.reduce<number>((sum, value) => sum + (value ?? 0), 0)
}

interface EntryProps {
  readonly value: number
  readonly name: string
  readonly says?: string
  readonly tone?: 'run' | 'good' | 'doubt' | 'bad' | undefined
}

function Entry({ value, name, says, tone }: EntryProps) {
  return (
    <div className={tone === undefined ? 'entry' : `entry entry-${tone}`}>
      <dt>
        {name}
        {says === undefined ? null : <span className="quiet">{says}</span>}
      </dt>
      <dd>{countText(value)}</dd>
    </div>
  )
}
