import { type ReactNode, useEffect, useRef } from 'react'
import { plainText } from '../text/visible-controls.ts'

interface PageProps {
  /** For the window's title, and the heading where `heading` is left out. */
  readonly title: string
  readonly heading?: ReactNode
  /** Stands beside the heading. */
  readonly aside?: ReactNode
  readonly children: ReactNode
}

export function Page({ title, heading = title, aside, children }: PageProps) {
  const top = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${plainText(title)} · ChokaQ Deck`
  }, [title])
  // A new page starts at its heading for the keyboard and for screen readers, unless something has taken the focus.
  useEffect(() => {
    if (document.activeElement === document.body || document.activeElement === null) top.current?.focus()
  }, [])
  return (
    <div className="page">
      <header className="page-head">
        <h1 ref={top} tabIndex={-1}>
          {heading}
        </h1>
        {aside === undefined ? null : <div className="page-aside">{aside}</div>}
      </header>
      {children}
    </div>
  )
}

interface SectionProps {
  readonly title: string
  readonly aside?: ReactNode
  readonly children: ReactNode
}

export function Section({ title, aside, children }: SectionProps) {
  return (
    <section className="section" aria-label={title}>
      <div className="section-head">
        <h2>{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  )
}
