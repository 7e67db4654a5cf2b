// The judge is judged: each invariant notices a planted violation, so that twenty green seeds mean something.
import { beforeAll, describe, expect, test } from 'vitest'
import type { JobRecord } from '../../src/core/job.ts'
import { History, type HistoryEntry, type TimedEntry } from './simulator/history.ts'
import { violations } from './simulator/invariants.ts'
import { simulate, type Simulation } from './simulator/simulate.ts'

let clean: Simulation

beforeAll(async () => {
  clean = await simulate(3)
})

type Entries = TimedEntry[]

function changed(change: (entries: Entries, rows: JobRecord[]) => void): readonly string[] {
  const history = new History(() => 0)
  history.entries.push(...structuredClone(clean.history.entries))
  const rows = structuredClone(clean.rows) as JobRecord[]
  change(history.entries, rows)
  return violations({ ...clean, history, rows }).map((text) => text.slice(0, text.indexOf(':')))
}

function find<K extends HistoryEntry['kind']>(
  entries: Entries,
  kind: K,
  where: (entry: Extract<TimedEntry, { kind: K }>) => boolean = () => true,
): { readonly at: number; readonly entry: Extract<TimedEntry, { kind: K }> } {
  const at = entries.findIndex((entry) => entry.kind === kind && where(entry as Extract<TimedEntry, { kind: K }>))
  if (at < 0) throw new Error(`the clean history has no such ${kind}`)
  return { at, entry: entries[at] as Extract<TimedEntry, { kind: K }> }
}

const completed = (entry: Extract<TimedEntry, { kind: 'settle' }>): boolean =>
  entry.verdict.kind === 'settled' && entry.verdict.outcome === 'completed'

const planted: readonly { what: string; breaks: string; change: (entries: Entries, rows: JobRecord[]) => void }[] = [
  {
    what: 'a job that vanished',
    breaks: 'I1 and I12',
    change(entries, rows) {
      const { id } = find(entries, 'answer', ({ outcome }) => outcome === 'enqueued').entry
      rows.splice(
        rows.findIndex((row) => row.id === id),
        1,
      )
    },
  },
  {
    what: 'a job that still waits',
    breaks: 'I1 and I12',
    change: (_entries, rows) => void (rows[0] = { ...(rows[0] as JobRecord), pillar: 'hot', state: 'pending' }),
  },
  {
    what: 'another payload',
    breaks: 'I2 and I4',
    change: (entries) => void Object.assign(find(entries, 'run').entry, { payload: '{}' }),
  },
  {
    what: 'a second insert of one id',
    breaks: 'I3 and I17',
    change(entries) {
      const { at, entry } = find(entries, 'enqueue', ({ verdict }) => verdict.kind === 'inserted')
      entries.splice(at, 0, entry)
    },
  },
  {
    what: 'a fetch of an owned job',
    breaks: 'I5 and I6',
    change(entries) {
      const { at, entry } = find(entries, 'fetch')
      entries.splice(at + 1, 0, { ...entry, token: entry.token + 0.5 })
    },
  },
  {
    what: 'a settle under an old token',
    breaks: 'I5 and I6',
    change: (entries) => void Object.assign(find(entries, 'settle', completed).entry, { token: 0 }),
  },
  {
    what: 'a handler called under a lost lease',
    breaks: 'I6',
    change(entries) {
      const { at, entry } = find(entries, 'run')
      entries.splice(at, 0, {
        kind: 'start',
        jobId: entry.jobId,
        token: 0,
        attempt: entry.attempt + 1,
        atMs: entry.atMs,
      })
    },
  },
  {
    what: 'a second end',
    breaks: 'I7',
    change(entries) {
      const { at, entry } = find(entries, 'settle', completed)
      entries.splice(at + 1, 0, entry)
    },
  },
  {
    what: 'too many failures',
    breaks: 'I8 and I9',
    change: (_entries, rows) => void (rows[0] = { ...(rows[0] as JobRecord), failureCount: 5 }),
  },
  {
    what: 'an attempt that ran twice',
    breaks: 'I8 and I9',
    change(entries) {
      const { at, entry } = find(entries, 'run')
      entries.splice(at, 0, entry)
    },
  },
  {
    what: 'a second run of a review handler',
    breaks: 'review',
    change(entries, rows) {
      const reviews = new Set(rows.flatMap(({ id, type }) => (type === 'sim.review.v1' ? [id] : [])))
      const { at, entry } = find(entries, 'run', ({ jobId }) => reviews.has(jobId))
      entries.splice(at + 1, 0, { ...entry, attempt: entry.attempt + 0.5 })
    },
  },
  {
    what: 'a rescue from a worker that lived',
    breaks: 'liveness',
    change(entries) {
      const healthy = { kind: 'register', workerId: 'w', process: 'healthy', atMs: 0 } as const
      entries.push(healthy, { kind: 'rescue', jobId: 'x', workerId: 'w', went: 'pending', atMs: 0 })
    },
  },
  {
    what: 'an early fetch',
    breaks: 'I11',
    change(entries) {
      const { entry } = find(
        entries,
        'enqueue',
        ({ row, verdict }) => row.due.kind === 'in' && row.due.delayMs > 5_000 && verdict.kind === 'inserted',
      )
      const fetch = { kind: 'fetch', jobId: entry.row.id, token: 0.5, queue: 'default', state: 'fetched', attempt: 0 }
      entries.push({ ...fetch, atMs: entry.atMs + 1_000 } as TimedEntry)
    },
  },
  {
    what: 'a wait that no rule gives',
    breaks: 'I13',
    change(entries) {
      const { entry } = find(entries, 'settle', ({ action }) => action.kind === 'retry' && action.charge === 'failure')
      Object.assign(entry.action, { delayMs: Number.NaN })
    },
  },
  {
    what: 'three owned jobs of the limited queue',
    breaks: 'I15',
    change(entries) {
      for (const jobId of ['a', 'b', 'c']) {
        entries.push({ kind: 'fetch', jobId, token: 1, queue: 'limited', state: 'fetched', attempt: 0, atMs: 9e15 })
      }
    },
  },
  {
    what: 'a run after the completion of its key',
    breaks: 'I19',
    change(entries) {
      const { entry } = find(entries, 'run', ({ key, jobId }) => {
        const ends = entries.some((each) => each.kind === 'settle' && each.jobId === jobId && completed(each))
        return key !== undefined && ends
      })
      entries.push({ ...entry, attempt: 99 })
    },
  },
  {
    what: 'a row that no counter knows',
    breaks: 'I21',
    change: (_entries, rows) => void rows.push({ ...(rows[0] as JobRecord), id: 'extra' }),
  },
  {
    what: 'a fetch from a paused queue',
    breaks: 'I23',
    change(entries) {
      const { at } = find(entries, 'pause')
      const { entry } = find(entries, 'fetch')
      const { queue } = find(entries, 'pause').entry
      entries.splice(at + 1, 0, { ...entry, queue, jobId: 'x' })
    },
  },
  {
    what: 'a run after a cancel',
    breaks: 'I23',
    change(entries) {
      const { at, entry } = find(entries, 'run')
      entries.splice(at, 0, { kind: 'cancel', jobId: entry.jobId, verdict: 'cancelled', atMs: entry.atMs })
    },
  },
]

describe('the invariants', () => {
  test('hold of the clean history', () => {
    expect(violations(clean)).toEqual([])
  })

  test.each(planted)('notice $what', ({ breaks, change }) => {
    expect(changed(change)).toContain(breaks)
  })
})
