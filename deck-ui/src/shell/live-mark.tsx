import { useLive } from '../live/live-context.tsx'
import { Icon } from '../parts/icon.tsx'
import { clockText, roughDuration } from '../text/duration.ts'
import { Text } from '../text/text.tsx'

const words = { connecting: 'connecting', live: 'live', stale: 'stale' } as const

export function LiveMark() {
  const { link, heardAtMs } = useLive()
  return (
    <span className={`live-mark live-${link}`}>
      {/* A new dot for each state that came: it pulses once. One that never rests would keep the machine busy all day. */}
      <span key={heardAtMs} className="live-dot" />
      {words[link]}
    </span>
  )
}

/** Numbers that no longer move must not look as if they did. */
export function StaleBanner() {
  const { link, heardAtMs, trouble } = useLive()
  if (link !== 'stale') return null
  return (
    <div className="stale-banner" role="alert">
      <Icon name="warning" />
      <p>
        <b>Stale.</b> <Text>{trouble ?? 'The stream of events is down.'}</Text> <Age heardAtMs={heardAtMs} /> Trying
        again.
      </p>
    </div>
  )
}

function Age({ heardAtMs }: { readonly heardAtMs: number | null }) {
  return <>{heardAtMs === null ? 'Nothing has come yet.' : `Live numbers are from ${clockText(heardAtMs)}.`}</>
}

export function HealthMark() {
  const { state } = useLive()
  if (state === null) return null
  const { health, healthReasons, oldestLagMs } = state
  const lag = oldestLagMs === null ? '' : `, oldest due job waits ${roughDuration(oldestLagMs)}`
  return (
    <span className={`health health-${health}`} title={healthReasons.join('\n')}>
      <span className="health-dot" />
      {health}
      <span className="off-screen">{lag}</span>
    </span>
  )
}
