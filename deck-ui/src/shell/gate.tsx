import { useQuery } from '@tanstack/react-query'
import { sessionQuery } from '../api/queries.ts'
import { problemOf } from '../api/request.ts'
import { LiveProvider } from '../live/live-context.tsx'
import { ProblemPanel } from '../parts/problem-panel.tsx'
import { Skeleton } from '../parts/skeleton.tsx'
import { ClockProvider } from '../text/clock.tsx'
import { LoginPage } from './login-page.tsx'
import { SessionProvider } from './session.tsx'
import { Shell } from './shell.tsx'

/** Nothing is read before it is known who is looking. */
export function Gate() {
  const { data: session, error, dataUpdatedAt, refetch } = useQuery(sessionQuery)
  if (error !== null && problemOf(error).status === 401) {
    return <LoginPage error={error} onIn={() => void refetch()} />
  }
  if (session === undefined) {
    return (
      <main className="gate">
        {error === null ? <Skeleton lines={8} /> : <ProblemPanel error={error} onRetry={() => void refetch()} />}
      </main>
    )
  }
  return (
    <SessionProvider session={session}>
      <ClockProvider offsetMs={session.nowMs - dataUpdatedAt}>
        <LiveProvider>
          <Shell />
        </LiveProvider>
      </ClockProvider>
    </SessionProvider>
  )
}
