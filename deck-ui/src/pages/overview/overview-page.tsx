import { useQuery } from '@tanstack/react-query'
import type { AttentionView } from '../../../../src/deck/wire.ts'
import { overviewQuery } from '../../api/queries.ts'
import { MetricCharts } from '../../charts/metric-charts.tsx'
import { RangePicker, useRange } from '../../charts/range-picker.tsx'
import { useLive } from '../../live/live-context.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page, Section } from '../../parts/page.tsx'
import { AttentionList } from './attention-list.tsx'
import { LiveCounts } from './live-counts.tsx'
import { ReviewCall } from './review-call.tsx'
import { CrashLedger } from './crash-ledger.tsx'

/** The call to decide says it already, and more of it. */
function besidesReview(attention: readonly AttentionView[], reviewCount: number): readonly AttentionView[] {
  return reviewCount === 0 ? attention : attention.filter(({ href }) => href !== 'review')
}

export function OverviewPage() {
  const [range, chooseRange] = useRange()
  const overview = useQuery(overviewQuery(range))
  const live = useLive()
  return (
    <Page title="Overview">
      <Loaded query={overview} lines={10}>
        {(data) => {
          const state = live.state ?? data.live
          return (
            <>
              <div className="first-look">
                <ReviewCall count={state.reviewCount} />
                <AttentionList attention={besidesReview(data.attention, state.reviewCount)} state={state} />
              </div>
              <LiveCounts state={state} />
              <Section title={`Last ${range}`} aside={<RangePicker range={range} onChoose={chooseRange} />}>
                <CrashLedger sums={data.sums} claims={data.claims} reviewCount={state.reviewCount} />
                <MetricCharts metrics={data} />
              </Section>
            </>
          )
        }}
      </Loaded>
    </Page>
  )
}
