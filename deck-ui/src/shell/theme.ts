/** Light or dark: what the system says, or what the person chose here. */
export const themes = ['auto', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const slot = 'chokaq-deck-theme'

export function storedTheme(): Theme {
  const stored = localStorage.getItem(slot)
  return themes.find((theme) => theme === stored) ?? 'auto'
}

export function applyStoredTheme(): void {
  show(storedTheme())
}

export function chooseTheme(theme: Theme): void {
  localStorage.setItem(slot, theme)
  show(theme)
  // Charts are drawn with colours, not with styles: they listen and draw again.
  dispatchEvent(new Event('deck-theme'))
}

function show(theme: Theme): void {
  if (theme === 'auto') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = theme
}
