import { useRoute } from 'wouter'
import { useLive } from '../live/live-context.tsx'
import { Icon, type IconName } from '../parts/icon.tsx'
import { RouteLink } from '../parts/route-link.tsx'
import { briefCount } from '../text/duration.ts'

interface Place {
  readonly to: `/${string}`
  /** Further paths of the same place. */
  readonly below?: string
  readonly name: string
  readonly icon: IconName
  /** After `g`, it leads here. */
  readonly letter: string
}

export const places: readonly Place[] = [
  { to: '/', name: 'Overview', icon: 'overview', letter: 'o' },
  { to: '/review', below: '/review/*?', name: 'Review', icon: 'review', letter: 'r' },
  { to: '/queues', below: '/queues/*?', name: 'Queues', icon: 'queues', letter: 'q' },
  { to: '/jobs', below: '/jobs/*?', name: 'Jobs', icon: 'jobs', letter: 'j' },
  { to: '/workers', name: 'Workers', icon: 'workers', letter: 'w' },
  { to: '/checklist', name: 'Checklist', icon: 'checklist', letter: 'c' },
  { to: '/audit', name: 'Audit', icon: 'audit', letter: 'a' },
]

export function Navigation({ onGo }: { readonly onGo?: () => void }) {
  return (
    <nav aria-label="Pages" className="navigation">
      {places.map((place) => (
        <PlaceLink key={place.to} place={place} onGo={onGo} />
      ))}
    </nav>
  )
}

function PlaceLink({ place, onGo }: { readonly place: Place; readonly onGo: (() => void) | undefined }) {
  const { to, below, name, icon } = place
  const [isHere] = useRoute(below ?? to)
  return (
    <RouteLink to={to} aria-current={isHere ? 'page' : undefined} onClick={onGo}>
      <Icon name={icon} />
      <span>{name}</span>
      <PlaceCount to={to} />
    </RouteLink>
  )
}

function PlaceCount({ to }: { readonly to: string }) {
  const { state } = useLive()
  if (state === null) return null
  switch (to) {
    case '/review':
      return state.reviewCount === 0 ? null : (
        <Badge tone="doubt" count={state.reviewCount} what="wait for a decision" />
      )
    case '/queues':
      return state.pausedQueueCount === 0 ? null : <Badge tone="warning" count={state.pausedQueueCount} what="paused" />
    case '/workers':
      return state.silentWorkerCount === 0 ? null : <Badge tone="bad" count={state.silentWorkerCount} what="silent" />
    case '/jobs':
      return state.deadCount === 0 ? null : <Badge tone="quiet" count={state.deadCount} what="dead" />
    default:
      return null
  }
}

interface BadgeProps {
  readonly tone: 'doubt' | 'warning' | 'bad' | 'quiet'
  readonly count: number
  readonly what: string
}

function Badge({ tone, count, what }: BadgeProps) {
  return (
    <span className={`badge badge-${tone}`} title={`${count} ${what}`}>
      {briefCount(count)} <span className="badge-what">{tone === 'doubt' ? '' : what}</span>
      {tone === 'doubt' ? <span className="off-screen">{what}</span> : null}
    </span>
  )
}
