import { useQuery } from '@tanstack/react-query'
import type { JobDetail } from '../../../../src/deck/wire-jobs.ts'
import { jobQuery } from '../../api/queries.ts'
import { Chip, StateChip } from '../../parts/chip.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page, Section } from '../../parts/page.tsx'
import { reviewPath, RouteLink } from '../../parts/route-link.tsx'
import { Time } from '../../text/clock.tsx'
import { Copyable } from '../../text/copyable.tsx'
import { JsonView } from '../../text/json-view.tsx'
import { Text } from '../../text/text.tsx'
import { AuditRows } from '../audit-rows.tsx'
import { DuplicateList } from './duplicate-list.tsx'
import { EffectList } from './effect-list.tsx'
import { ErrorList } from './error-list.tsx'
import { JobActs } from './job-acts.tsx'
import { JobFacts } from './job-facts.tsx'
import { Timeline } from './timeline.tsx'

export function JobPage({ id }: { readonly id: string }) {
  const query = useQuery(jobQuery(id))
  return (
    <Page
      title={query.data?.job.type ?? 'Job'}
      heading={query.data === undefined ? 'Job' : <JobHeading job={query.data.job} />}
      aside={query.data === undefined ? undefined : <JobActs detail={query.data} />}
    >
      <Loaded query={query} lines={14}>
        {(detail) => (
          <>
            <JobHead detail={detail} />
            <DoubtCall detail={detail} />
            <div className="two-columns">
              <div>
                <JobStory detail={detail} />
              </div>
              <div className="side-column">
                <JobFacts detail={detail} />
                <DuplicateList jobs={detail.duplicates} />
              </div>
            </div>
          </>
        )}
      </Loaded>
    </Page>
  )
}

function JobHeading({ job }: Pick<JobDetail, 'job'>) {
  return (
    <>
      <Text>{job.type}</Text>{' '}
      {job.key === null ? null : (
        <code className="quiet">
          <Text>{job.key}</Text>
        </code>
      )}
    </>
  )
}

function JobHead({ detail }: { readonly detail: JobDetail }) {
  const { job } = detail
  return (
    <div className="job-head">
      <StateChip state={job.state} inDoubt={job.inDoubt} />
      {job.reason === null || job.reason === 'InDoubt' ? null : (
        <Chip tone={job.inDoubt ? 'doubt' : 'bad'}>{job.reason}</Chip>
      )}
      <Copyable value={job.id} what="job id" />
      <span className="quiet">
        enqueued <Time ms={job.createdAtMs} />
      </span>
    </div>
  )
}

/** A job in doubt cannot be helped by its acts: it leads to the decision. */
function DoubtCall({ detail }: { readonly detail: JobDetail }) {
  const { job, acts } = detail
  if (!job.inDoubt) return null
  const bar = acts.find(({ act }) => act === 'review')?.why
  return (
    <div className="panel doubt-call">
      <Icon name="review" />
      <p>
        <b>Nobody knows whether the side effect of this job happened.</b> Its key is held until a person decides.{' '}
        {bar === null || bar === undefined ? null : <Text>{bar}</Text>}
      </p>
      <RouteLink to={reviewPath(job.id)} className="button button-doubt">
        See the evidence and decide
        <Icon name="arrow" />
      </RouteLink>
    </div>
  )
}

export function JobStory({ detail }: { readonly detail: JobDetail }) {
  const { timeline, effects, errors, job, audit } = detail
  return (
    <>
      <Section title="What happened">
        <Timeline entries={timeline} />
      </Section>
      {effects.length === 0 ? null : (
        <Section title="Effects">
          <EffectList effects={effects} />
        </Section>
      )}
      {errors.length === 0 ? null : (
        <Section title="Errors">
          <ErrorList errors={errors} />
        </Section>
      )}
      <Section title="Payload">
        {job.payload === null ? (
          <p className="quiet">Not kept: the queue drops payloads when a job is finished.</p>
        ) : (
          <JsonView json={job.payload} what="payload" />
        )}
        {job.payloadIsCut ? <p className="hint">Only the first 256 kB are shown.</p> : null}
      </Section>
      {job.result === null ? null : (
        <Section title="Result">
          <JsonView json={job.result} what="result" />
        </Section>
      )}
      {audit.length === 0 ? null : (
        <Section title="Acts of people">
          <AuditRows rows={audit} />
        </Section>
      )}
    </>
  )
}
