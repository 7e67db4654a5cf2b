import { useQuery } from '@tanstack/react-query'
import type { JobDetail } from '../../../../src/deck/wire-jobs.ts'
import { jobQuery } from '../../api/queries.ts'
import { Empty } from '../../parts/empty.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page } from '../../parts/page.tsx'
import { jobPath, RouteLink } from '../../parts/route-link.tsx'
import { JsonView } from '../../text/json-view.tsx'
import { Text } from '../../text/text.tsx'
import { EditForm } from './edit-form.tsx'

export function EditPage({ id }: { readonly id: string }) {
  const query = useQuery({ ...jobQuery(id), refetchInterval: false, refetchOnWindowFocus: false })
  return (
    <Page
      title="Edit payload"
      aside={
        <RouteLink to={jobPath(id)} className="button">
          Back to the job
        </RouteLink>
      }
    >
      <Loaded query={query} lines={10}>
        {(detail) => <EditBody detail={detail} />}
      </Loaded>
    </Page>
  )
}

function EditBody({ detail }: { readonly detail: JobDetail }) {
  const { job, acts, payloadSchema } = detail
  const act = acts.find((one) => one.act === 'edit')
  if (act === undefined || !act.allowed || job.payload === null || job.payloadIsCut) {
    return <Empty title="This payload cannot be edited now.">{act?.why ?? whyNot(detail)}</Empty>
  }
  return (
    <>
      <p className="lead">
        <Text>{job.type}</Text>
        {job.key === null ? null : (
          <>
            {' '}
            <code>
              <Text>{job.key}</Text>
            </code>
          </>
        )}
      </p>
      <div className="two-columns">
        <EditForm detail={detail} payload={job.payload} />
        <div className="side-column">
          <section className="panel" aria-label="Schema">
            <h2 className="panel-title">Schema</h2>
            {payloadSchema === null ? (
              <p className="quiet">
                None is known for this type. The worker validates the payload before the handler runs.
              </p>
            ) : (
              <JsonView json={payloadSchema} what="schema" />
            )}
          </section>
        </div>
      </div>
    </>
  )
}

function whyNot({ job }: JobDetail): string {
  if (job.payloadIsCut) return 'It is too large to be edited here.'
  return job.payload === null ? 'It was not kept.' : 'The job has moved on.'
}
