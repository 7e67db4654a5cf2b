import type { ReactNode } from 'react'

/** Says that there is nothing, and what that means. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children === undefined ? null : <p className="quiet">{children}</p>}
    </div>
  )
}
