import type { Decision } from '../../api/acts.ts'
import { Empty } from '../../parts/empty.tsx'
import { jobPath, RouteLink } from '../../parts/route-link.tsx'
import { Text } from '../../text/text.tsx'
import { decisionWords } from './decision-words.ts'

export type Ending =
  | { readonly kind: 'done'; readonly decision: Decision }
  | { readonly kind: 'conflict'; readonly by: string; readonly as: string }

interface ResolvedPanelProps {
  readonly ending: Ending
  readonly id: string
}

/** What became of it. A second operator is told whose decision stands, and that theirs did nothing. */
export function ResolvedPanel({ ending, id }: ResolvedPanelProps) {
  const isDone = ending.kind === 'done'
  return (
    <section className={isDone ? 'panel resolved is-done' : 'panel resolved'} aria-label="Decision" role="alert">
      {isDone ? (
        <h2>Resolved: {decisionWords[ending.decision].done}</h2>
      ) : (
        <>
          <h2>
            Already resolved by <Text>{ending.by}</Text> as <Text>{ending.as}</Text>
          </h2>
          <p>Your decision did nothing. What stands is theirs.</p>
        </>
      )}
      <p className="acts">
        <RouteLink to={jobPath(id)} className="button">
          See the job
        </RouteLink>
        <RouteLink to="/review" className="button button-doubt">
          Next review
        </RouteLink>
      </p>
    </section>
  )
}

export function GonePanel({ id }: { readonly id: string }) {
  return (
    <Empty title="This job does not wait for a person.">
      It may have been decided meanwhile. <RouteLink to={jobPath(id)}>See the job</RouteLink> or{' '}
      <RouteLink to={`/audit?subject=${encodeURIComponent(id)}`}>who decided</RouteLink>.
    </Empty>
  )
}
