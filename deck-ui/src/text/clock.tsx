/** Relative times that stay true while the page is open, by the server's clock. */
import { createContext, type ReactNode, use, useEffect, useState } from 'react'
import { exactText, relativeText } from './duration.ts'

const ClockContext = createContext(0)
const tickMs = 1_000

interface ClockProviderProps {
  /** The server's clock minus this machine's. */
  readonly offsetMs: number
  readonly children: ReactNode
}

export function ClockProvider({ offsetMs, children }: ClockProviderProps) {
  const [nowMs, setNowMs] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), tickMs)
    return () => clearInterval(timer)
  }, [])
  return <ClockContext value={nowMs + offsetMs}>{children}</ClockContext>
}

export function useNow(): number {
  return use(ClockContext)
}

export function Time({ ms }: { readonly ms: number }) {
  const nowMs = useNow()
  const date = new Date(ms)
  const iso = Number.isNaN(date.getTime()) ? undefined : date.toISOString()
  return (
    <time dateTime={iso} title={exactText(ms)}>
      {relativeText(ms, nowMs)}
    </time>
  )
}
