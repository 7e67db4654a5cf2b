import { type ReactNode, useId } from 'react'
import { Icon, type IconName } from './icon.tsx'

interface ActButtonProps {
  /** Why it cannot be done now. The button stays reachable by keyboard, so that the reason can be read. */
  readonly why?: string | null | undefined
  readonly icon?: IconName
  readonly tone?: 'main' | 'danger' | 'doubt' | undefined
  readonly onClick: () => void
  readonly children: ReactNode
}

export function ActButton({ why, icon, tone, onClick, children }: ActButtonProps) {
  const id = useId()
  const isBarred = why !== undefined && why !== null
  const look = tone === undefined ? 'button' : `button button-${tone}`
  return (
    <span className="act">
      <button
        type="button"
        className={look}
        aria-disabled={isBarred}
        aria-describedby={isBarred ? id : undefined}
        onClick={isBarred ? undefined : onClick}
      >
        {icon === undefined ? null : <Icon name={icon} />}
        {children}
      </button>
      {isBarred ? (
        <span id={id} role="tooltip" className="why">
          {why}
        </span>
      ) : null}
    </span>
  )
}
