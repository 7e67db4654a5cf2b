import { problemOf } from '../api/request.ts'
import { Text } from '../text/text.tsx'
import { Icon } from './icon.tsx'

interface ProblemPanelProps {
  readonly error: unknown
  readonly onRetry?: () => void
}

export function ProblemPanel({ error, onRetry }: ProblemPanelProps) {
  const { title, code } = problemOf(error)
  return (
    <div className="panel problem" role="alert">
      <Icon name="critical" />
      <div>
        <p>
          <Text>{title}</Text>
        </p>
        <p className="quiet">
          <Text>{code}</Text>
        </p>
      </div>
      {onRetry === undefined ? null : (
        <button type="button" className="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  )
}
