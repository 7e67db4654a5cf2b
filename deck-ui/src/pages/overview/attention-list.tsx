import type { AttentionView, LiveState } from '../../../../src/deck/wire.ts'
import { Icon } from '../../parts/icon.tsx'
import { ownPath, RouteLink } from '../../parts/route-link.tsx'
import { baseUrl } from '../../shell/base-path.ts'
import { Text } from '../../text/text.tsx'

interface AttentionListProps {
  readonly attention: readonly AttentionView[]
  readonly state: LiveState
}

/** What a person should look at, worst first. */
export function AttentionList({ attention, state }: AttentionListProps) {
  if (attention.length === 0) return state.reviewCount === 0 ? <AllWell state={state} /> : null
  return (
    <section className="panel attention" aria-label="Needs attention">
      <h2>Needs attention</h2>
      <ul>
        {attention.map((one) => (
          <li key={one.text} className={`attention-${one.level}`} data-row>
            <Icon name={one.level} />
            <AttentionText attention={one} />
          </li>
        ))}
      </ul>
    </section>
  )
}

function AttentionText({ attention }: { readonly attention: AttentionView }) {
  const { text, href, level } = attention
  const to = ownPath(href, baseUrl)
  const said = (
    <>
      <span className="off-screen">{level}: </span>
      <Text>{text}</Text>
    </>
  )
  if (to === undefined) return <span>{said}</span>
  return (
    <RouteLink to={to} data-row-link>
      {said}
      <Icon name="arrow" />
    </RouteLink>
  )
}

function AllWell({ state }: { readonly state: LiveState }) {
  return (
    <section className="panel attention attention-none" aria-label="Needs attention">
      <h2>Needs attention</h2>
      <p className="all-well">
        <Icon name="check" />
        {state.health === 'healthy'
          ? 'Nothing. No job is late, and nobody needs to decide anything.'
          : 'Nothing is listed.'}
      </p>
      {state.healthReasons.map((reason) => (
        <p key={reason} className="quiet">
          <Text>{reason}</Text>
        </p>
      ))}
    </section>
  )
}
