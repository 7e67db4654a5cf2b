import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { isSignedIn, logOut } from '../api/login.ts'
import { useLocation } from 'wouter'
import { DialogFrame } from '../parts/dialog.tsx'
import { Icon } from '../parts/icon.tsx'
import { RouteLink } from '../parts/route-link.tsx'
import { Text } from '../text/text.tsx'
import { Brand } from './brand.tsx'
import { ErrorBoundary } from './error-boundary.tsx'
import { HealthMark, LiveMark, StaleBanner } from './live-mark.tsx'
import { Navigation } from './navigation.tsx'
import { Pages } from './pages.tsx'
import { useSession } from './session.tsx'
import { ShortcutHelp } from './shortcut-help.tsx'
import { listenForShortcuts } from './shortcuts.ts'
import { ThemeSwitch } from './theme-switch.tsx'

export function Shell() {
  const [path, go] = useLocation()
  const [open, setOpen] = useState<'menu' | 'help' | null>(null)
  useEffect(() => listenForShortcuts({ go, help: () => setOpen('help') }), [go])
  // A new page starts at its top.
  useEffect(() => {
    scrollTo(0, 0)
  }, [path])

  return (
    <div className="shell">
      <a className="skip-link" href="#main" onClick={skipToMain}>
        Skip to the page
      </a>
      <header className="top-bar">
        <button type="button" className="icon-button" aria-label="Menu" onClick={() => setOpen('menu')}>
          <Icon name="menu" />
        </button>
        <RouteLink to="/" className="brand-link">
          <Brand />
        </RouteLink>
        <HealthMark />
        <LiveMark />
      </header>
      <aside className="side-bar" aria-label="Deck">
        <RouteLink to="/" className="brand-link">
          <Brand />
        </RouteLink>
        <div className="side-state">
          <HealthMark />
          <LiveMark />
        </div>
        <Navigation />
        <SideFoot onHelp={() => setOpen('help')} />
      </aside>
      <div className="content">
        <StaleBanner />
        <main id="main" tabIndex={-1}>
          <ErrorBoundary key={path}>
            <Pages />
          </ErrorBoundary>
        </main>
      </div>
      {open === 'menu' ? (
        <DialogFrame title="Menu" onClose={() => setOpen(null)}>
          <Navigation onGo={() => setOpen(null)} />
          <SideFoot onHelp={() => setOpen('help')} />
        </DialogFrame>
      ) : null}
      {open === 'help' ? <ShortcutHelp onClose={() => setOpen(null)} /> : null}
    </div>
  )
}

/** A fragment in the address would be resolved against the base address, and leave the page. */
function skipToMain(event: { preventDefault: () => void }): void {
  event.preventDefault()
  document.getElementById('main')?.focus()
}

function SignOut() {
  const client = useQueryClient()
  if (!isSignedIn()) return null
  const leave = async (): Promise<void> => {
    await logOut()
    client.clear()
    location.reload()
  }
  return (
    <button type="button" className="button button-small" onClick={() => void leave()}>
      Sign out
    </button>
  )
}

function SideFoot({ onHelp }: { readonly onHelp: () => void }) {
  const { actor, role, version, source } = useSession()
  return (
    <div className="side-foot">
      <p className="side-source" title="what the Deck looks at">
        <Text>{source}</Text>
      </p>
      <p>
        <Text>{actor}</Text> · {role}
      </p>
      <div className="side-tools">
        <ThemeSwitch />
        <button type="button" className="button button-small" onClick={onHelp} aria-label="Keyboard shortcuts">
          <kbd>?</kbd>
        </button>
        <span className="quiet">v{version}</span>
      </div>
      <SignOut />
    </div>
  )
}
