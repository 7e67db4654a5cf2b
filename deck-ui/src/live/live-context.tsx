import { useQueryClient } from '@tanstack/react-query'
import { createContext, type ReactNode, use, useEffect, useState } from 'react'
import { connectLive, type LiveView, startView } from './live-connection.ts'

const LiveContext = createContext<LiveView>(startView)

export function LiveProvider({ children }: { readonly children: ReactNode }) {
  const [view, setView] = useState(startView)
  const client = useQueryClient()
  useEffect(() => connectLive(setView), [])

  // A job came into review or left it: lists of what waits for a person must not lag behind the number beside them.
  const reviewCount = view.state?.reviewCount
  useEffect(() => {
    if (reviewCount !== undefined) void client.invalidateQueries({ queryKey: ['reviews'] })
  }, [client, reviewCount])

  return <LiveContext value={view}>{children}</LiveContext>
}

export function useLive(): LiveView {
  return use(LiveContext)
}
