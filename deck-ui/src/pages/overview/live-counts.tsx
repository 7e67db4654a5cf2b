import type { LiveState } from '../../../../src/deck/wire.ts'
import { RouteLink } from '../../parts/route-link.tsx'
import { briefCount, durationText } from '../../text/duration.ts'

export function LiveCounts({ state }: { readonly state: LiveState }) {
  const { oldestLagMs, workerCount, silentWorkerCount, totals } = state
  const running = state.processingCount + state.fetchedCount
  const beating = workerCount === 0 ? 'none is alive' : 'all beat'
  const silent = silentWorkerCount === 0 ? beating : `${silentWorkerCount} silent`
  return (
    <section className="counts" aria-label="Now">
      <Count
        name="Waiting"
        to="/jobs/hot?state=pending"
        value={briefCount(state.pendingCount)}
        says={lagWords(oldestLagMs)}
      />
      <Count
        name="Running"
        to="/jobs/hot?state=processing"
        value={briefCount(running)}
        says={`${briefCount(state.fetchedCount)} not started yet`}
      />
      <Count
        name="Scheduled"
        to="/jobs/hot?state=scheduled"
        value={briefCount(state.scheduledCount)}
        says="due later"
      />
      <Count
        name="Dead"
        to="/jobs/dlq"
        value={briefCount(state.deadCount)}
        says={`${briefCount(state.reviewCount)} in review`}
        tone={state.deadCount > 0 ? 'bad' : undefined}
      />
      <Count
        name="Workers"
        to="/workers"
        value={briefCount(workerCount)}
        says={silent}
        tone={silentWorkerCount > 0 || workerCount === 0 ? 'bad' : undefined}
      />
      <Count
        name="Completed"
        to="/jobs/archive?state=completed"
        value={briefCount(totals.completed)}
        says="since the start"
      />
    </section>
  )
}

function lagWords(oldestLagMs: number | null): string {
  return oldestLagMs === null ? 'none is late' : `oldest waits ${durationText(oldestLagMs)}`
}

interface CountProps {
  readonly name: string
  readonly to: `/${string}`
  readonly value: string
  readonly says: string
  readonly tone?: 'bad' | undefined
}

function Count({ name, to, value, says, tone }: CountProps) {
  return (
    <RouteLink to={to} className={tone === undefined ? 'count' : `count count-${tone}`}>
      <span className="count-name">{name}</span>
      <span className="count-value">{value}</span>
      <span className="count-says">{says}</span>
    </RouteLink>
  )
}
