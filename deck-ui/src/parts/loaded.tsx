import type { ReactNode } from 'react'
import { ProblemPanel } from './problem-panel.tsx'
import { Skeleton } from './skeleton.tsx'

interface Loading<T> {
  readonly data: T | undefined
  readonly error: unknown
  readonly refetch: () => unknown
}

interface LoadedProps<T> {
  readonly query: Loading<T>
  /** How many grey lines stand for what is coming. */
  readonly lines?: number
  readonly children: (data: T) => ReactNode
}

/** What a query knows, or how it fails. Data that came earlier stays on screen under a later failure. */
export function Loaded<T>({ query, lines = 6, children }: LoadedProps<T>) {
  const { data, error } = query
  return (
    <>
      {error === null ? null : <ProblemPanel error={error} onRetry={() => void query.refetch()} />}
      {data === undefined ? error === null ? <Skeleton lines={lines} /> : null : children(data)}
    </>
  )
}
