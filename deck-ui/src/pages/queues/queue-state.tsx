import type { QueueView } from '../../../../src/deck/wire.ts'
import { Chip } from '../../parts/chip.tsx'
import { briefCount } from '../../text/duration.ts'

/** Paused and unserved queues look alike from outside: jobs wait. The words tell them apart. */
export function QueueState({ queue }: { readonly queue: QueueView }) {
  const { paused, served, pendingCount } = queue
  return (
    <span className="chips">
      {paused ? <Chip tone="warning">paused</Chip> : null}
      {served ? null : <Chip tone={pendingCount > 0 ? 'bad' : 'neutral'}>no worker</Chip>}
      {!paused && served ? <Chip tone="good">open</Chip> : null}
    </span>
  )
}

export function RunningMeter({ queue }: { readonly queue: QueueView }) {
  const { processingCount, fetchedCount, maxConcurrency } = queue
  const running = processingCount + fetchedCount
  if (maxConcurrency === null) return <span>{briefCount(running)} / no limit</span>
  return (
    <span className="meter-with-text">
      <meter min={0} max={Math.max(1, maxConcurrency)} value={running} aria-label="running of the limit" />
      {briefCount(running)} / {briefCount(maxConcurrency)}
    </span>
  )
}
