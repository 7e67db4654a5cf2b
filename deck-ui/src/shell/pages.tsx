import { Redirect, Route, Switch, useSearchParams } from 'wouter'
import { AuditPage } from '../pages/audit-page.tsx'
import { ChecklistPage } from '../pages/checklist-page.tsx'
import { EditPage } from '../pages/job/edit-page.tsx'
import { JobPage } from '../pages/job/job-page.tsx'
import { isPillar } from '../pages/jobs/job-filter.ts'
import { JobsPage } from '../pages/jobs/jobs-page.tsx'
import { OverviewPage } from '../pages/overview/overview-page.tsx'
import { QueuePage } from '../pages/queues/queue-page.tsx'
import { QueuesPage } from '../pages/queues/queues-page.tsx'
import { ReviewListPage } from '../pages/review/review-list-page.tsx'
import { ReviewPage } from '../pages/review/review-page.tsx'
import { WorkersPage } from '../pages/workers-page.tsx'
import { Empty } from '../parts/empty.tsx'
import { Page } from '../parts/page.tsx'
import { RouteLink } from '../parts/route-link.tsx'
import { basePath } from './base-path.ts'

export function Pages() {
  return (
    <Switch>
      <Route path="/" component={OverviewPage} />
      <Route path="/review" component={ReviewListPage} />
      <Route path="/review/:id">{({ id }) => <ReviewPage key={id} id={nameInAddress()} />}</Route>
      <Route path="/queues" component={QueuesPage} />
      <Route path="/queues/:name">{({ name }) => <QueuePage key={name} name={nameInAddress()} />}</Route>
      <Route path="/jobs" component={ToPillar} />
      <Route path="/jobs/:id">
        {({ id }) => (isPillar(id) ? <JobsPage pillar={id} /> : <JobPage key={id} id={nameInAddress()} />)}
      </Route>
      <Route path="/jobs/:id/edit">{({ id }) => <EditPage key={id} id={nameInAddress()} />}</Route>
      <Route path="/workers" component={WorkersPage} />
      <Route path="/checklist" component={ChecklistPage} />
      <Route path="/audit" component={AuditPage} />
      <Route>
        <Page title="No such page">
          <Empty title="Nothing is here.">
            The address may be old. <RouteLink to="/">Go to the overview</RouteLink>
          </Empty>
        </Page>
      </Route>
    </Switch>
  )
}

/** `jobs?pillar=dlq&type=…` is what an address of the API looks like; it finds its page. */
function ToPillar() {
  const [search] = useSearchParams()
  const pillar = search.get('pillar')
  const rest = new URLSearchParams(search)
  rest.delete('pillar')
  const query = rest.toString()
  const path = `/jobs/${isPillar(pillar) ? pillar : 'hot'}`
  return <Redirect to={query === '' ? path : `${path}?${query}`} replace />
}

/** The second part of the path. The router decodes paths as a whole, which would turn `%252F` into a slash. */
function nameInAddress(): string {
  const part = location.pathname.slice(basePath.length).split('/')[2] ?? ''
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
