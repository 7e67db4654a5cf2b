/** Durations, ages and numbers as people read them. */
const units = [
  { ms: 86_400_000, letter: 'd' },
  { ms: 3_600_000, letter: 'h' },
  { ms: 60_000, letter: 'm' },
  { ms: 1_000, letter: 's' },
] as const

/** Two units at most: `2 d 4 h`, `3 m 20 s`, `1.4 s`, `35 ms`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 10_000) return `${(Math.floor(ms / 100) / 10).toString()} s`
  const first = units.findIndex((unit) => ms >= unit.ms)
  const big = units[first]
  const small = units[first + 1]
  if (big === undefined) return `${Math.round(ms)} ms`
  const count = Math.floor(ms / big.ms)
  const rest = small === undefined ? 0 : Math.floor((ms % big.ms) / small.ms)
  return small === undefined || rest === 0 ? `${count} ${big.letter}` : `${count} ${big.letter} ${rest} ${small.letter}`
}

/** One unit: `4 m`. */
export function roughDuration(ms: number): string {
  const unit = units.find((one) => ms >= one.ms)
  return unit === undefined ? `${Math.max(0, Math.round(ms))} ms` : `${Math.floor(ms / unit.ms)} ${unit.letter}`
}

export function relativeText(atMs: number, nowMs: number): string {
  const age = nowMs - atMs
  if (Math.abs(age) < 1_000) return 'now'
  return age > 0 ? `${roughDuration(age)} ago` : `in ${roughDuration(-age)}`
}

const exact = new Intl.DateTimeFormat('en-CA', {
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  hourCycle: 'h23',
  timeZoneName: 'short',
})
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })

export function exactText(atMs: number): string {
  return Number.isNaN(new Date(atMs).getTime()) ? String(atMs) : exact.format(atMs).replace(', ', ' ')
}

export function clockText(atMs: number): string {
  return Number.isNaN(new Date(atMs).getTime()) ? String(atMs) : clock.format(atMs)
}

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const short = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })

export function countText(count: number): string {
  return whole.format(count)
}

/** Six figures at most: `12,034`, `1.2M`. */
export function briefCount(count: number): string {
  return Math.abs(count) < 1_000_000 ? whole.format(count) : compact.format(count)
}

export function limitedCount({ count, isExact }: { readonly count: number; readonly isExact: boolean }): string {
  return isExact ? countText(count) : `${countText(count)}+`
}

export function rateText(perSecond: number): string {
  return `${short.format(perSecond)}/s`
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : many}`
}
