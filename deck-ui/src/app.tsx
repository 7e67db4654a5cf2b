import { CSPProvider } from '@base-ui/react/csp-provider'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { Router } from 'wouter'
import { problemOf } from './api/request.ts'
import { NoticeProvider } from './parts/notices.tsx'
import { Gate } from './shell/gate.tsx'
import { basePath } from './shell/base-path.ts'
import { ErrorBoundary } from './shell/error-boundary.tsx'

const client = new QueryClient({
  defaultOptions: {
    queries: {
      // What the server refused once it will refuse again; only silence is worth another try.
      retry: (failureCount, error) => problemOf(error).status === 0 && failureCount < 2,
      staleTime: 1_000,
    },
  },
})

export function App() {
  return (
    <ErrorBoundary>
      <QueryClientProvider client={client}>
        <CSPProvider disableStyleElements>
          <Router base={basePath}>
            <NoticeProvider>
              <Gate />
            </NoticeProvider>
          </Router>
        </CSPProvider>
      </QueryClientProvider>
    </ErrorBoundary>
  )
}
