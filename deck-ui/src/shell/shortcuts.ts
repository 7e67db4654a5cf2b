/**
 * Keys. Lists mark each row with `data-row` and the link in it with `data-row-link`; the first filter of a page has
 * `data-filter`. Moving works on what is in the page, so that a virtual list and a short one behave alike.
 */
import { places } from './navigation.tsx'

interface Shortcuts {
  readonly go: (path: string) => void
  readonly help: () => void
}

export function listenForShortcuts(shortcuts: Shortcuts): () => void {
  let leader = false
  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
    const { target, key } = event
    if (isTyping(target)) {
      if (key === 'Escape' && target instanceof HTMLElement && !isInDialog(target)) target.blur()
      return
    }
    if (document.querySelector('[role="dialog"]') !== null) return
    const wasLeader = leader
    leader = key === 'g' && !wasLeader
    const place = wasLeader ? places.find(({ letter }) => letter === key) : undefined
    const done = place === undefined ? act(key, target, shortcuts) : (shortcuts.go(place.to), true)
    if (done) event.preventDefault()
  }
  addEventListener('keydown', onKey)
  return () => removeEventListener('keydown', onKey)
}

function act(key: string, target: EventTarget | null, { help }: Shortcuts): boolean {
  switch (key) {
    case 'j':
    case 'ArrowDown':
      return moveRow(1, key === 'j')
    case 'k':
    case 'ArrowUp':
      return moveRow(-1, key === 'k')
    case 'x':
      return toggleRow(target)
    case '/':
      return focusFirst('[data-filter]')
    case '?':
      help()
      return true
    default:
      return false
  }
}

/** Arrows scroll the page until a row has the focus; letters take the first row. */
function moveRow(step: 1 | -1, mayEnter: boolean): boolean {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')]
  const at = rows.findIndex((row) => row.contains(document.activeElement))
  if (rows.length === 0 || (at === -1 && !mayEnter)) return false
  const next = at === -1 ? 0 : Math.min(rows.length - 1, Math.max(0, at + step))
  const link = rows[next]?.querySelector<HTMLElement>('[data-row-link]')
  link?.focus()
  link?.scrollIntoView({ block: 'nearest' })
  return true
}

function toggleRow(target: EventTarget | null): boolean {
  const row = target instanceof Element ? target.closest('[data-row]') : null
  const box = row?.querySelector<HTMLInputElement>('input[type="checkbox"]')
  box?.click()
  return box !== undefined && box !== null
}

function focusFirst(selector: string): boolean {
  const found = document.querySelector<HTMLElement>(selector)
  found?.focus()
  return found !== null
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLTextAreaElement ||
    target instanceof HTMLSelectElement ||
    (target instanceof HTMLInputElement && target.type !== 'checkbox' && target.type !== 'radio')
  )
}

function isInDialog(target: HTMLElement): boolean {
  return target.closest('[role="dialog"]') !== null
}
