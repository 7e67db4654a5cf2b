import type { AnchorHTMLAttributes, ReactNode } from 'react'
import { Link } from 'wouter'

interface RouteLinkProps extends Omit<AnchorHTMLAttributes<HTMLAnchorElement>, 'href' | 'className'> {
  /** A path below the Deck, such as `/review`. Nothing else can be linked. */
  readonly to: `/${string}`
  readonly className?: string
  readonly children: ReactNode
}

export function RouteLink({ to, children, ...rest }: RouteLinkProps) {
  return (
    <Link to={to} {...rest}>
      {children}
    </Link>
  )
}

export const jobPath = (id: string): `/${string}` => `/jobs/${encodeURIComponent(id)}`
export const reviewPath = (id: string): `/${string}` => `/review/${encodeURIComponent(id)}`
export const queuePath = (name: string): `/${string}` => `/queues/${encodeURIComponent(name)}`

/** A relative address from the server as a path of ours, or undefined where it leads anywhere else. */
export function ownPath(href: string, base: URL): `/${string}` | undefined {
  if (!URL.canParse(href, base)) return undefined
  const url = new URL(href, base)
  if (url.origin !== base.origin || !url.pathname.startsWith(base.pathname)) return undefined
  return `/${url.pathname.slice(base.pathname.length)}${url.search}`
}
