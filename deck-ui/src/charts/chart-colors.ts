/** Colours of charts come from the style sheet, so that light and dark stand in one place. */
export type ChartTone = 'good' | 'warning' | 'bad' | 'doubt' | 'run' | 'neutral' | 'deep'

/** A canvas needs a colour, not a variable: the browser resolves it on a probe. */
export function resolveColor(place: HTMLElement, name: string): string {
  const probe = document.createElement('span')
  probe.className = 'off-screen'
  probe.style.color = `var(${name})`
  place.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}
