import { createContext, type ReactNode, use } from 'react'
import type { Session } from '../../../src/deck/wire.ts'

const SessionContext = createContext<Session>({
  actor: '',
  role: 'viewer',
  version: '',
  source: '',
  nowMs: 0,
  redactedPaths: [],
})

export function SessionProvider({ session, children }: { readonly session: Session; readonly children: ReactNode }) {
  return <SessionContext value={session}>{children}</SessionContext>
}

export function useSession(): Session {
  return use(SessionContext)
}

/** Why the role may not do what an operator may; undefined where it may. */
export function useOperatorBar(): string | undefined {
  const { role } = useSession()
  return role === 'viewer' ? 'Your role is viewer: it can look, and change nothing.' : undefined
}
