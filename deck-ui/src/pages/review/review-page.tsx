import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { ReviewDetail } from '../../../../src/deck/wire-jobs.ts'
import { reviewQuery } from '../../api/queries.ts'
import { problemOf } from '../../api/request.ts'
import { Chip } from '../../parts/chip.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page, Section } from '../../parts/page.tsx'
import { jobPath, RouteLink } from '../../parts/route-link.tsx'
import { Copyable } from '../../text/copyable.tsx'
import { JsonView } from '../../text/json-view.tsx'
import { Text } from '../../text/text.tsx'
import { DuplicateList } from '../job/duplicate-list.tsx'
import { EffectList, isInDoubt } from '../job/effect-list.tsx'
import { ErrorList } from '../job/error-list.tsx'
import { JobFacts } from '../job/job-facts.tsx'
import { Timeline } from '../job/timeline.tsx'
import { DecisionForm } from './decision-form.tsx'
import { GonePanel, type Ending, ResolvedPanel } from './resolved-panel.tsx'
import { Verdict } from './verdict.tsx'

export function ReviewPage({ id }: { readonly id: string }) {
  const query = useQuery(reviewQuery(id))
  const [ending, setEnding] = useState<Ending | null>(null)
  const isGone = query.data === undefined && problemOf(query.error).status === 404
  return (
    <Page
      title={query.data === undefined ? 'Review' : `Review ${query.data.review.key}`}
      heading={query.data === undefined ? 'Review' : <ReviewHeading detail={query.data} />}
      aside={
        <RouteLink to={jobPath(id)} className="button">
          The job
        </RouteLink>
      }
    >
      {isGone ? (
        <GonePanel id={id} />
      ) : (
        <Loaded query={query} lines={14}>
          {(detail) => <ReviewBody detail={detail} ending={ending} onEnd={setEnding} />}
        </Loaded>
      )}
    </Page>
  )
}

function ReviewHeading({ detail: { review } }: { readonly detail: ReviewDetail }) {
  return (
    <>
      <Text>{review.type}</Text>{' '}
      <code className="quiet">
        <Text>{review.key}</Text>
      </code>
    </>
  )
}

interface ReviewBodyProps {
  readonly detail: ReviewDetail
  readonly ending: Ending | null
  readonly onEnd: (ending: Ending) => void
}

function ReviewBody({ detail, ending, onEnd }: ReviewBodyProps) {
  const { review } = detail
  return (
    <>
      <div className="job-head">
        <Chip tone="doubt">{review.reason}</Chip>
        <Copyable value={review.id} what="job id" />
        <span className="quiet">revision {review.revision}</span>
      </div>
      {ending === null ? <Verdict detail={detail} /> : null}
      <div className="review-columns">
        <div className="review-first">
          <DoubtfulCalls detail={detail} />
        </div>
        {ending === null ? (
          <DecisionForm detail={detail} onEnd={onEnd} />
        ) : (
          <ResolvedPanel ending={ending} id={review.id} />
        )}
        <div className="review-rest">
          <Evidence detail={detail} />
        </div>
      </div>
    </>
  )
}

function DoubtfulCalls({ detail: { detail } }: { readonly detail: ReviewDetail }) {
  const doubtful = detail.effects.filter(isInDoubt)
  if (doubtful.length === 0) {
    return <p className="panel">No call is recorded as open: the handler itself is in doubt.</p>
  }
  return (
    <Section title={doubtful.length === 1 ? 'The call in doubt' : 'Calls in doubt'}>
      <EffectList effects={doubtful} />
    </Section>
  )
}

/** Everything else that is known. */
function Evidence({ detail: { detail } }: { readonly detail: ReviewDetail }) {
  const { effects, errors, timeline, job } = detail
  const known = effects.filter((effect) => !isInDoubt(effect))
  return (
    <>
      <Section title="What happened">
        <Timeline entries={timeline} />
      </Section>
      {known.length === 0 ? null : (
        <Section title="What is known of other calls">
          <EffectList effects={known} />
        </Section>
      )}
      {errors.length === 0 ? null : (
        <Section title="Errors">
          <ErrorList errors={errors} />
        </Section>
      )}
      {job.payload === null ? null : (
        <Section title="Payload">
          <JsonView json={job.payload} what="payload" />
        </Section>
      )}
      <JobFacts detail={detail} />
      <DuplicateList jobs={detail.duplicates} />
    </>
  )
}
