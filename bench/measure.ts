/** Measuring: medians of several runs, temporary databases, and the clock. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** One line of the table. `ratio` is against what `against` says. */
export interface Line {
  readonly name: string
  readonly value: number
  readonly unit: string
  readonly ratio?: number
  readonly against?: string
  /** What the project wants of this line, in words and as a check. */
  readonly target?: string
  readonly met?: boolean
}

export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

/** Rate in units a second. */
export async function rateOf(count: number, work: () => unknown): Promise<number> {
  const startedMs = nowMs()
  await work()
  return count / ((nowMs() - startedMs) / 1_000)
}

/** Runs two contenders in turn, several times: what disturbs the machine disturbs both. */
export async function inTurn(
  rounds: number,
  contenders: readonly (() => Promise<number>)[],
): Promise<readonly number[]> {
  const results: number[][] = contenders.map(() => [])
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, contender] of contenders.entries()) results[index]?.push(await contender())
  }
  return results.map(median)
}

/** A database file in a folder of its own, removed afterwards. */
export async function withDatabase<T>(work: (path: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'chokaq-bench-'))
  try {
    return await work(join(folder, 'bench.db'))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export function compared(
  name: string,
  [own, other]: readonly [number, number],
  against: string,
  atLeast?: number,
  unit = '/s',
): Line {
  const ratio = own / other
  const line = { name, value: own, unit, ratio, against }
  return atLeast === undefined ? line : { ...line, target: `>= ${atLeast} of it`, met: ratio >= atLeast }
}
