// The kill matrix: a handler with two effects dies, or stands still, at a boundary; others take over; and the provider's
// own count says how often each effect happened.
import { fork, type ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createChokaQ } from '../../src/engine/enqueue/client.ts'
import { programOf } from '../crash/fixture-programs.ts'
import { openStorage } from '../crash/fixtures/open-storage.ts'
import { until } from '../crash/until.ts'
import {
  modes,
  points,
  twoEffects,
  type EffectSetup,
  type Mode,
  type Point,
  type Strike,
} from './fixtures/two-effects.ts'
import type { EffectDatabase, EffectStorage } from './storages.ts'

export const scenarios = ['one crash', 'two crashes', 'old owner wakes'] as const
export type Scenario = (typeof scenarios)[number]

export interface Cell {
  readonly point: Point
  readonly what: 'a' | 'b'
  readonly mode: Mode
  readonly scenario: Scenario
}

export interface CellResult {
  /** Acts of 'a' and of 'b'. */
  readonly acts: readonly [number, number]
  readonly end: 'completed' | 'review' | 'dead'
  /** Empty where the promise is kept. */
  readonly broken: string
}

/** Every cell. Where the handler has returned, both effects are behind it and one row is enough. */
export function allCells(): readonly Cell[] {
  const targets = points.flatMap((point) =>
    point.endsWith('settle')
      ? [{ point, what: 'b' as const }]
      : [
          { point, what: 'a' as const },
          { point, what: 'b' as const },
        ],
  )
  return targets.flatMap((target) =>
    modes.flatMap((mode) => scenarios.map((scenario) => ({ ...target, mode, scenario }))),
  )
}

export function nameOf({ point, what, mode, scenario }: Cell): string {
  return `${scenario}, ${point}${point.endsWith('settle') ? '' : ` of ${what}`}, ${mode}`
}

const deadlineMs = 60_000

/** Processes of one run, after `buildPrograms`; whatever is started on it ends with it. */
export class EffectRun {
  readonly folder: string
  readonly chokaq: ReturnType<typeof createChokaQ>
  readonly #database: EffectDatabase
  readonly #children: { readonly child: ChildProcess; readonly ended: Promise<void> }[] = []
  #count = 0

  constructor(database: EffectDatabase) {
    this.#database = database
    this.folder = this.#database.folder
    mkdirSync(join(this.folder, 'acts'))
    this.chokaq = createChokaQ({ storage: openStorage(this.#database.url) })
  }

  /** A worker process that begins at once, or when `begin` is called. */
  worker(mode: Mode, strike?: Strike, waits = false) {
    this.#count += 1
    const name = `worker-${this.#count}`
    const sign = join(this.folder, `go-${name}`)
    const setup: EffectSetup = {
      name,
      url: this.#database.url,
      folder: this.folder,
      mode,
      ...(strike === undefined ? {} : { strike }),
      ...(waits ? { waitFor: sign } : {}),
    }
    const child = fork(programOf('effect-worker'), [JSON.stringify(setup)], {
      execArgv: [],
      env: { PATH: process.env['PATH'] },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    const ended = new Promise<void>((resolve) => {
      child.once('exit', () => {
        resolve()
      })
    })
    this.#children.push({ child, ended })
    return {
      ended,
      begin: () => {
        writeFileSync(sign, '')
      },
      /** It reached its boundary. */
      struck: () =>
        until(`${name} to reach its boundary`, deadlineMs, () => existsSync(join(this.folder, `struck-${name}`))),
      wake: () => {
        writeFileSync(join(this.folder, `woken-${name}`), '')
        child.kill('SIGCONT')
      },
      stop: async () => {
        child.kill('SIGTERM')
        await until(`${name} to stop`, deadlineMs, () => child.exitCode !== null || child.signalCode !== null)
        // Where the job was over early, the signal may have come before anybody listened.
        if ((child.exitCode ?? 0) !== 0) throw new Error(`${name} ended with ${child.exitCode}`)
      },
    }
  }

  acts(what: string): number {
    return readdirSync(join(this.folder, 'acts')).filter((file) => file.startsWith(`${what} `)).length
  }

  async enqueue(job: typeof twoEffects): Promise<string> {
    return (await this.chokaq.enqueue(job, { id: 'p1' })).id
  }

  /** Until the job is over, or waits for a person. */
  over(id: string): Promise<CellResult['end']> {
    return until('the job to end', deadlineMs, async () => {
      const job = await this.chokaq.jobs.get(id)
      if (job?.state === 'completed') return 'completed'
      if (job?.state === 'dead') return job.inDoubt ? 'review' : 'dead'
      return undefined
    })
  }

  async close(): Promise<void> {
    for (const { child, ended } of this.#children) {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      await ended
    }
    await this.chokaq.close()
    await this.#database.remove()
  }
}

export async function runCell(storage: EffectStorage, cell: Cell): Promise<CellResult> {
  const run = new EffectRun(await storage.create())
  try {
    const { point, what, mode, scenario } = cell
    const id = await run.enqueue(twoEffects)
    const strike = { point, what, how: scenario === 'old owner wakes' ? 'freeze' : 'kill' } as const
    const first = run.worker(mode, strike)
    const last = run.worker(mode, undefined, true)
    const second = scenario === 'two crashes' ? run.worker(mode, strike, true) : undefined
    await first.struck()
    if (strike.how === 'kill') await first.ended
    if (second !== undefined) {
      second.begin()
      // It may find nothing to die at: the job is over, or waits for a person.
      await Promise.race([second.ended, run.over(id)])
    }
    last.begin()
    let end = await run.over(id)
    if (strike.how === 'freeze') {
      first.wake()
      await first.stop()
      end = await run.over(id)
    }
    await last.stop()
    const acts = [run.acts('a'), run.acts('b')] as const
    return { acts, end, broken: broken(cell, acts, end) }
  } finally {
    await run.close()
  }
}

function broken({ mode, scenario }: Cell, [a, b]: readonly [number, number], end: CellResult['end']): string {
  if (a > 1 || b > 1) return 'acted twice'
  if (end === 'completed') return a === 1 && b === 1 ? '' : 'completed without having acted'
  if (end === 'dead') return 'dead, and nobody is asked'
  // A provider that takes keys can always be asked again; reconcile tells unless the old owner may still be calling.
  if (mode === 'key') return 'in review, although the key was safe'
  return mode === 'reconcile' && scenario !== 'old owner wakes' ? 'in review, although reconcile could tell' : ''
}

/** Runs cells side by side: they mostly wait for a worker to be found dead. */
export async function runCells(
  storage: EffectStorage,
  cells: readonly Cell[],
  width: number,
  onResult: (cell: Cell, result: CellResult) => void,
): Promise<ReadonlyMap<Cell, CellResult>> {
  const results = new Map<Cell, CellResult>()
  const left = [...cells]
  const lane = async (): Promise<void> => {
    for (let cell = left.shift(); cell !== undefined; cell = left.shift()) {
      const result = await runCell(storage, cell)
      results.set(cell, result)
      onResult(cell, result)
    }
  }
  await Promise.all(Array.from({ length: width }, lane))
  return results
}

export function table(results: ReadonlyMap<Cell, CellResult>): string {
  const entries = [...results]
  const rows = [...new Set(entries.map(([{ point, what, mode }]) => `${point}|${what}|${mode}`))].sort(
    (x, y) => points.indexOf(x.split('|')[0] as Point) - points.indexOf(y.split('|')[0] as Point) || x.localeCompare(y),
  )
  const text = (row: string, scenario: Scenario): string => {
    const found = entries.find(([c]) => `${c.point}|${c.what}|${c.mode}` === row && c.scenario === scenario)
    if (found === undefined) return ''
    const { acts, end, broken: problem } = found[1]
    return `${end} ${acts.join('+')}${problem === '' ? '' : ` BROKEN: ${problem}`}`
  }
  const lines = rows.map((row) => [...row.split('|'), ...scenarios.map((scenario) => text(row, scenario))].join(' | '))
  return [`boundary | of | settled by | ${scenarios.join(' | ')}`, ...lines].join('\n')
}
