/** Lines, their medians and their ratios: what is wanted of each, and whether it is met. */
import type { ContenderName } from './contender.ts'
import type { Figures } from './measurements.ts'

/** What one contender showed in one line. */
export interface Entry {
  readonly line: string
  readonly contender: ContenderName
  readonly median: number
  readonly runs: readonly number[]
  readonly unit: string
}

interface Target {
  readonly line: string
  readonly against: ContenderName
  readonly atLeast?: number
  readonly atMost?: number
}

export interface Verdict extends Target {
  readonly own: number
  readonly theirs: number
  readonly ratio: number
  readonly met: boolean
}

const postgresPeers = ['graphile-worker', 'pg-boss', 'bullmq on postgres'] as const

export const targets: readonly Target[] = [
  { line: '50 single enqueues', against: 'graphile-worker', atLeast: 5 },
  { line: '50 single enqueues', against: 'pg-boss', atLeast: 5 },
  { line: 'drain', against: 'graphile-worker', atLeast: 1.5 },
  { line: 'drain', against: 'pg-boss', atLeast: 1 },
  { line: 'drain', against: 'bullmq on redis', atLeast: 2 },
  { line: 'drain', against: 'bullmq on postgres', atLeast: 2 },
  { line: 'drain, keep 0', against: 'graphile-worker', atLeast: 2 },
  { line: 'drain, keyed', against: 'graphile-worker', atLeast: 1 },
  ...postgresPeers.map((against) => ({ line: 'idle latency p50', against, atMost: 1 }) as const),
  { line: 'idle latency p50', against: 'bullmq on redis', atMost: 1 },
]

/** Limits of ChokaQ's own, against nobody. */
export const limits: readonly { readonly line: string; readonly atLeast?: number; readonly atMost?: number }[] = [
  { line: 'statements of an idle worker', atMost: 2 },
  { line: 'drain kept with a snapshot held', atLeast: 0.7 },
]

const units: readonly (readonly [RegExp, string])[] = [
  [/^(server|client) CPU/, 'µs'],
  [/latency/, 'ms'],
  [/kept/, 'of it'],
  [/^jobs run/, 'jobs'],
]

export function unitOf(line: string): string {
  return units.find(([pattern]) => pattern.test(line))?.[1] ?? '/s'
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const upper = sorted[sorted.length >> 1] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[(sorted.length >> 1) - 1] ?? Number.NaN) + upper) / 2
}

/** One entry per line and contender, in the order in which they were measured. */
export class Results {
  readonly #runs = new Map<
    string,
    { readonly line: string; readonly contender: ContenderName; readonly runs: number[] }
  >()

  add(contender: ContenderName, figures: Figures): void {
    for (const [line, value] of Object.entries(figures)) {
      const id = `${line}/${contender}`
      const known = this.#runs.get(id) ?? { line, contender, runs: [] }
      known.runs.push(value)
      this.#runs.set(id, known)
    }
  }

  get entries(): readonly Entry[] {
    return [...this.#runs.values()].map(({ line, contender, runs }) => ({
      line,
      contender,
      median: median(runs),
      runs,
      unit: unitOf(line),
    }))
  }

  get verdicts(): readonly Verdict[] {
    return targets.flatMap((target) => {
      const own = this.#median(target.line, 'chokaq')
      const theirs = this.#median(target.line, target.against)
      if (own === undefined || theirs === undefined) return []
      const ratio = own / theirs
      return [{ ...target, own, theirs, ratio, met: isWithin(ratio, target) }]
    })
  }

  get limits(): readonly {
    readonly line: string
    readonly own: number
    readonly met: boolean
    readonly wanted: string
  }[] {
    return limits.flatMap((limit) => {
      const own = this.#median(limit.line, 'chokaq')
      return own === undefined ? [] : [{ line: limit.line, own, met: isWithin(own, limit), wanted: wantedOf(limit) }]
    })
  }

  #median(line: string, contender: ContenderName): number | undefined {
    const runs = this.#runs.get(`${line}/${contender}`)?.runs
    return runs === undefined ? undefined : median(runs)
  }
}

type Range = { readonly atLeast?: number; readonly atMost?: number }

function isWithin(value: number, { atLeast = -Infinity, atMost = Infinity }: Range): boolean {
  return value >= atLeast && value <= atMost
}

function wantedOf({ atLeast, atMost }: Range): string {
  return atLeast === undefined ? `<= ${atMost ?? ''}` : `>= ${atLeast}`
}

function figure(value: number): string {
  return Math.abs(value) >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(2)
}

export function tableOf(results: Results): string {
  const rows: string[] = []
  for (const line of new Set(results.entries.map((entry) => entry.line))) {
    const entries = results.entries.filter((entry) => entry.line === line)
    const own = entries.find(({ contender }) => contender === 'chokaq')?.median
    rows.push(line)
    for (const { contender, median: value, unit, runs } of entries) {
      const ratio = own === undefined || contender === 'chokaq' ? '' : `chokaq is ${(own / value).toFixed(2)} of it`
      const spread = runs.length > 1 ? `${figure(Math.min(...runs))} to ${figure(Math.max(...runs))}` : ''
      const shown = `${figure(value)} ${unit}`
      rows.push(`  ${contender.padEnd(20)} ${shown.padStart(14)}  ${spread.padEnd(20)} ${ratio}`.trimEnd())
    }
  }
  return rows.join('\n')
}

export function verdictsOf(results: Results): string {
  const against = results.verdicts.map((verdict) => {
    const name = `${verdict.line}, against ${verdict.against}`
    return `${name.padEnd(62)} ${verdict.ratio.toFixed(2).padStart(6)}  ${verdict.met ? 'met' : 'NOT MET'}: ${wantedOf(verdict)}`
  })
  const own = results.limits.map(
    ({ line, own: value, met, wanted }) =>
      `${line.padEnd(62)} ${value.toFixed(2).padStart(6)}  ${met ? 'met' : 'NOT MET'}: ${wanted}`,
  )
  return [...against, ...own].join('\n')
}
