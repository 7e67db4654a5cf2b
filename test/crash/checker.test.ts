// The checker itself: a sound run has no violations, and one planted violation of each invariant is seen and named.
import { describe, expect, test } from 'vitest'
import { check, invariants, type Rules } from './checker.ts'
import { hashOf } from './fixtures/history-writer.ts'
import type { Line, NewLine } from './history.ts'
import type { Snapshot } from './snapshot.ts'
import { dead, done, record } from './planted-records.ts'

const policy = { attempts: 4, baseMs: 100, factor: 2, capMs: 1_000, jitter: 0.2 }
const none = 'crash.none.v1'

/** Lines by time: `[at, line]`; those of another process also carry its number. */
type Step = readonly [at: number, line: NewLine, pid?: number]

function history(...steps: readonly Step[]): readonly Line[] {
  return steps.map(([at, line, pid = 1], seq) => ({ at, pid, by: `process-${pid}`, seq, ...line }))
}

function snapshot(part: Partial<Snapshot> = {}): Snapshot {
  const jobs = part.jobs ?? [done('j1', { op: 'a' })]
  const enqueued = { name: 'jobs.enqueued', queue: 'default', type: none, label: '', value: jobs.length } as const
  return { stats: [enqueued], queues: [], workers: [], markers: [], userRows: [], ...part, jobs }
}

// ---- the lines of one sound job, to be bent

const called = (what: Partial<Extract<NewLine, { kind: 'enq.call' }>> = {}, op = 'a'): NewLine => ({
  kind: 'enq.call',
  op,
  id: null,
  key: null,
  hash: hashOf({ op }),
  type: none,
  delayMs: 0,
  poison: false,
  outbox: false,
  parent: null,
  ...what,
})
const accepted = (what: object = {}): NewLine => ({ kind: 'enq.ok', op: 'a', job: 'j1', outcome: 'enqueued', ...what })
const fetching = (call: number, workerId = 'w1'): NewLine => ({ kind: 'fetch.call', call, queue: 'default', workerId })
const claim = (fence: number, what: object = {}): NewLine => ({
  kind: 'claim',
  call: fence,
  job: 'j1',
  fence,
  hash: hashOf({ op: 'a' }),
  queue: 'default',
  type: none,
  workerId: 'w1',
  started: true,
  attempt: 1,
  failures: 0,
  ...what,
})
const begins = (what: object = {}): NewLine => ({
  kind: 'run.begin',
  job: 'j1',
  attempt: 1,
  hash: hashOf({ op: 'a' }),
  key: null,
  type: none,
  ...what,
})
const ends = (what: object = {}): NewLine => ({ kind: 'run.end', job: 'j1', attempt: 1, ok: true, ...what })
const settling = (fence: number, call: number, what: object = {}): NewLine => ({
  kind: 'ack.call',
  call,
  job: 'j1',
  fence,
  action: 'complete',
  reason: null,
  charged: false,
  delayMs: null,
  ...what,
})
const settled = (fence: number, call: number, what: object = {}): NewLine => ({
  kind: 'ack.ok',
  call,
  job: 'j1',
  fence,
  outcome: 'completed',
  repeated: false,
  ...what,
})
const up = (workerId = 'w1'): NewLine => ({ kind: 'up', role: 'worker', workerId })
const beat = (workerId = 'w1'): NewLine => ({ kind: 'hb.ok', workerId })

const sound: readonly Step[] = [
  [0, up()],
  [1, { kind: 'policy', type: none, policy }],
  [10, called()],
  [12, accepted()],
  [20, fetching(1)],
  [22, claim(1)],
  [23, { kind: 'fetch.ok', call: 1, count: 1 }],
  [24, begins()],
  [30, ends()],
  [31, settling(1, 100)],
  [33, settled(1, 100)],
]

interface Planted {
  readonly invariant: string
  readonly what: string
  readonly lines: readonly Step[]
  readonly snapshot?: Partial<Snapshot>
  readonly rules?: Rules
}

const second: Step = [40, claim(2, { workerId: 'w2' }), 2]

const planted: readonly Planted[] = [
  { invariant: 'I1', what: 'an accepted job is nowhere', lines: sound, snapshot: { jobs: [] } },
  {
    invariant: 'I1',
    what: 'an accepted job is left pending',
    lines: sound,
    snapshot: { jobs: [record('j1', { op: 'a' }, { pillar: 'hot', state: 'pending' })] },
  },
  { invariant: 'I2', what: 'a job that nobody sent runs', lines: [...sound, [50, begins({ job: 'j9', hash: 'x' })]] },
  {
    invariant: 'I2',
    what: 'a job that nobody sent is stored',
    lines: sound,
    snapshot: { jobs: [done('j1', { op: 'a' }), done('j2', { op: 'ghost' })] },
  },
  {
    invariant: 'I3',
    what: 'a keyed order is there twice',
    lines: [...sound, [60, called({ key: 'keyed/a' })]],
    snapshot: { jobs: [done('j1', { op: 'a' }), done('j2', { op: 'a' })] },
  },
  {
    invariant: 'I4',
    what: 'a handler gets another payload',
    lines: [...sound, [50, begins({ hash: 'x', attempt: 2 })]],
  },
  { invariant: 'I5', what: 'a job is taken from a live worker', lines: [...sound.slice(0, 8), [39, beat()], second] },
  { invariant: 'I6', what: 'a token falls', lines: [...sound, [40, claim(1, { workerId: 'w2' }), 2]] },
  {
    invariant: 'I6',
    what: 'a stale settle is taken',
    lines: [...sound.slice(0, 9), second, [50, settling(1, 100)], [52, settled(1, 100)]],
  },
  { invariant: 'I7', what: 'a job ends twice', lines: [...sound, [50, settling(1, 101)], [52, settled(1, 101)]] },
  {
    invariant: 'I7',
    what: 'a job stands in two pillars',
    lines: sound,
    snapshot: { jobs: [done('j1', { op: 'a' }), dead('j1', { op: 'a' }, 'FatalError')] },
  },
  { invariant: 'I8', what: 'an attempt number comes twice', lines: [...sound, [50, begins()]] },
  { invariant: 'I8', what: 'an attempt was made by nobody', lines: [...sound, [50, begins({ attempt: 3 })]] },
  {
    invariant: 'I8',
    what: 'a job crashes more often than it may',
    lines: sound,
    snapshot: { jobs: [record('j1', { op: 'a' }, { crashCount: 4 })] },
    rules: { crashBudget: 2 },
  },
  { invariant: 'I9', what: 'a poison job completes', lines: [...sound, [60, called({ poison: true })]] },
  {
    invariant: 'I10',
    what: 'a dead worker keeps its job',
    lines: [
      ...sound.slice(0, 8),
      [25, up('w2'), 2],
      [40, { kind: 'kill', target: 1, point: 'x' }, 9],
      [9_000, claim(2, { workerId: 'w2' }), 2],
    ],
  },
  { invariant: 'I11', what: 'a delayed job starts early', lines: [...sound, [5, called({ delayMs: 500 })]] },
  {
    invariant: 'I11',
    what: 'a retry starts early',
    lines: [
      ...sound.slice(0, 9),
      [31, settling(1, 100, { action: 'retry', charged: true, delayMs: 100 })],
      [33, settled(1, 100, { outcome: 'retried' })],
      [60, claim(2)],
    ],
  },
  {
    invariant: 'I12',
    what: 'a job is forgotten',
    lines: [
      [0, { kind: 'quiet' }],
      [1, called()],
      [2, accepted()],
      [9_000, begins()],
    ],
  },
  {
    invariant: 'I13',
    what: 'a retry waits for too long',
    lines: [...sound.slice(0, 9), [31, settling(1, 100, { action: 'retry', charged: true, delayMs: 5_000 })]],
  },
  {
    invariant: 'I15',
    what: 'a limit is overshot',
    lines: [
      [5, { kind: 'limit', queue: 'default', n: 1 }],
      ...sound.slice(0, 8),
      [28, claim(2, { job: 'j2', workerId: 'w2' }), 2],
      [60, settling(2, 200, { job: 'j2' }), 2],
      [61, settled(2, 200, { job: 'j2' }), 2],
      ...sound.slice(8),
    ],
  },
  {
    invariant: 'I17',
    what: 'a key has two active jobs',
    lines: sound,
    snapshot: {
      jobs: ['j1', 'j2'].map((id) => record(id, { op: 'a' }, { pillar: 'hot', state: 'scheduled', keyHash: 'k' })),
    },
  },
  {
    invariant: 'I17',
    what: 'a duplicate of nothing',
    lines: [...sound, [50, accepted({ job: 'j7', outcome: 'already-active' })]],
  },
  {
    invariant: 'I19',
    what: 'a key runs after its completion',
    lines: [
      ...sound.slice(0, 7),
      [24, begins({ key: 'keyed/k' })],
      ...sound.slice(8),
      [50, begins({ job: 'j2', key: 'keyed/k' })],
    ],
  },
  {
    invariant: 'I19',
    what: 'two jobs of a key run at once',
    lines: [
      ...sound.slice(0, 7),
      [24, begins({ key: 'keyed/k' })],
      [26, begins({ job: 'j2', key: 'keyed/k' }), 2],
      ...sound.slice(8, 9),
    ],
  },
  {
    invariant: 'I19',
    what: 'a row is written twice with one completion',
    lines: sound,
    snapshot: {
      jobs: [record('j1', { op: 'a' }, { type: 'crash.tx.v1' })],
      userRows: [
        { op: 'a', job: 'j1' },
        { op: 'a', job: 'j1' },
      ],
    },
  },
  { invariant: 'I20', what: 'a job came without its row', lines: [...sound, [60, called({ outbox: true })]] },
  { invariant: 'I21', what: 'a job is not counted', lines: sound, snapshot: { stats: [] } },
  { invariant: 'I22', what: 'an outcome is never recorded', lines: sound.slice(0, 9) },
  {
    invariant: 'I23',
    what: 'a cancelled job starts',
    lines: [...sound.slice(0, 4), [15, { kind: 'cancel.ok', job: 'j1', verdict: 'cancelled' }], ...sound.slice(4)],
  },
  {
    invariant: 'I23',
    what: 'a running handler does not hear of its cancel',
    lines: [...sound.slice(0, 8), [25, { kind: 'cancel.ok', job: 'j1', verdict: 'requested' }], [9_000, ends()]],
  },
  {
    invariant: 'I23',
    what: 'a paused queue is fetched from',
    lines: [...sound.slice(0, 4), [15, { kind: 'pause.ok', queue: 'default' }], ...sound.slice(4)],
  },
  {
    invariant: 'I24',
    what: 'a handler is not told that its lease is lost',
    lines: [...sound.slice(0, 8), [25, { kind: 'fenced', workerId: 'w1', why: 'beats-failed' }], [9_000, ends()]],
  },
  {
    invariant: 'I25',
    what: 'a worker stops late',
    lines: [
      ...sound,
      [50, { kind: 'stop.call', target: 1, graceMs: 100 }],
      [9_000, { kind: 'exit', target: 1, code: 0, signal: null }, 9],
    ],
  },
  {
    invariant: 'I25',
    what: 'a stopped worker still owns a job',
    lines: [
      ...sound,
      [50, { kind: 'stop.call', target: 1, graceMs: 100 }],
      [60, { kind: 'exit', target: 1, code: 0, signal: null }, 9],
    ],
    snapshot: { jobs: [record('j1', { op: 'a' }, { pillar: 'hot', state: 'processing', workerId: 'w1' })] },
  },
]

describe('the checker of histories', () => {
  test('a sound run has no violations', () => {
    expect(check(history(...sound), snapshot())).toEqual([])
  })

  test.each(planted)('$invariant sees that $what', ({ invariant, lines, snapshot: part, rules }) => {
    const violations = check(history(...lines), snapshot(part), rules)
    expect(violations.filter((violation) => violation.startsWith(`${invariant}:`))).not.toEqual([])
  })

  test('every invariant has a planted violation', () => {
    expect([...new Set(planted.map(({ invariant }) => invariant))].sort()).toEqual(Object.keys(invariants).sort())
  })
})
