import { ProblemPanel } from '../../parts/problem-panel.tsx'
import { countText, plural } from '../../text/duration.ts'
import { Text } from '../../text/text.tsx'
import { type BulkProgress, refusedCount } from './bulk-run.ts'

interface BulkResultProps {
  readonly progress: BulkProgress
  /** Of how many, where it is known. */
  readonly total: number | undefined
  readonly done: string
}

/** How far it is, and what was refused and why. */
export function BulkResult({ progress, total, done }: BulkResultProps) {
  const { phase, doneCount, refused, error } = progress
  if (phase === 'ready') return null
  const handled = doneCount + refusedCount(progress)
  return (
    <div className="bulk-result" role="status">
      {total === undefined ? null : (
        <progress max={Math.max(1, total)} value={Math.min(handled, total)} aria-label="progress" />
      )}
      <p>
        <b>
          {plural(doneCount, 'job')} {done}
        </b>
        {total === undefined ? '' : ` of ${countText(total)}`}
        {phase === 'stopped' ? ', then stopped' : ''}
        {phase === 'finished' ? '. Finished.' : ''}
      </p>
      {refused.size === 0 ? null : (
        <ul>
          {[...refused].map(([why, count]) => (
            <li key={why}>
              {countText(count)} refused: <Text>{why}</Text>
            </li>
          ))}
        </ul>
      )}
      {error === null ? null : <ProblemPanel error={error} />}
    </div>
  )
}
