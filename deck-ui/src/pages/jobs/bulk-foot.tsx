import type { BulkRun } from './bulk-run.ts'

interface BulkFootProps {
  readonly run: BulkRun
  readonly act: string
  readonly danger: boolean
  readonly count: string
  /** So few that a sample would be all of them. */
  readonly isSmall: boolean
  readonly missing: string | undefined
  readonly onClose: () => void
}

const sampleSize = 10
const callSize = 500

export function BulkFoot({ run, act, danger, count, isSmall, missing, onClose }: BulkFootProps) {
  const { phase } = run.progress
  const look = danger ? 'button button-danger' : 'button button-main'
  const isBarred = missing !== undefined
  return (
    <div className="dialog-foot">
      <span className="hint">{phase === 'ready' ? missing : undefined}</span>
      {phase === 'running' ? (
        <button type="button" className="button" onClick={run.stop}>
          Stop
        </button>
      ) : (
        <button type="button" className="button" onClick={onClose}>
          {phase === 'ready' ? 'Not now' : 'Close'}
        </button>
      )}
      {phase === 'ready' ? (
        <button
          type="button"
          className={look}
          aria-disabled={isBarred}
          onClick={() => (isBarred ? undefined : void run.runSample(sampleSize))}
        >
          {isSmall ? `${act} ${count}` : `${act} ${sampleSize} first`}
        </button>
      ) : null}
      {phase === 'sampled' || phase === 'stopped' || phase === 'failed' ? (
        <button type="button" className={look} onClick={() => void run.runRest(callSize)}>
          {phase === 'failed' ? 'Try again' : `${act} the rest`}
        </button>
      ) : null}
    </div>
  )
}
