// Which commands are drawn, and how often: enough jobs have to be under way for the rare ends to be met.
import fc from 'fast-check'
import type { SettleAction } from '../../../src/core/storage.ts'
import { boom } from '../../../src/testing/conformance/actions.ts'
import {
  advance,
  cancel,
  claim,
  type Command,
  crash,
  disown,
  enqueue,
  fetch,
  promote,
  resurrect,
  setPaused,
  settle,
  start,
  workers,
} from './commands.ts'
import { types } from './model.ts'

const keep = { kind: 'full' } as const
const complete = { kind: 'complete', result: '1', markerLifeMs: 1e12, keep, children: [] } as const
const skip = {
  kind: 'skip',
  duplicateOf: '01890a5d-ac96-774b-bcce-b302099a8057',
  holder: 'completed',
  result: null,
} as const
const actions: readonly SettleAction[] = [
  complete,
  complete,
  complete,
  { kind: 'retry', delayMs: 0, failure: boom, charge: 'failure', reason: 'failed' },
  { kind: 'retry', delayMs: 5_000, failure: boom, charge: 'failure', reason: 'failed' },
  { kind: 'retry', delayMs: 2_000, failure: null, charge: 'nothing', reason: 'retry-after' },
  { kind: 'bury', reason: 'FatalError', failure: boom, hold: false },
  { kind: 'bury', reason: 'ReviewRequested', failure: boom, hold: true },
  skip,
  { kind: 'defer', delayMs: 3_000 },
  { kind: 'cancel', hold: false },
  { kind: 'cancel', hold: true },
  { kind: 'release' },
]

const at = fc.nat({ max: 30 })
const recent = fc.nat({ max: 5 })
const key = fc.constantFrom('a', 'b')
const worker = fc.constantFrom(...workers)
const mode = fc.constantFrom('continue' as const, 'new-operation' as const)

const enqueues = fc
  .tuple(
    fc.constantFrom(...types, 'raw' as const, 'raw' as const),
    key,
    fc.integer({ min: -1, max: 1 }),
    fc.constantFrom(0, 0, 4_000),
  )
  .map((args) => enqueue(...args))
const fetches = fc.tuple(worker, fc.integer({ min: 1, max: 3 })).map((args) => fetch(...args))

export const anyCommands: readonly fc.Arbitrary<Command>[] = [
  enqueues,
  enqueues,
  enqueues,
  fetches,
  fetches,
  fc.tuple(recent, key).map((args) => claim(...args)),
  recent.map(start),
  recent.map(start),
  recent.map(start),
  fc.tuple(recent, fc.constantFrom(...actions)).map((args) => settle(...args)),
  fc.tuple(recent, fc.constantFrom(...actions)).map((args) => settle(...args)),
  fc.tuple(at, fc.constantFrom(...actions)).map((args) => settle(...args)),
  worker.map(crash),
  worker.map(disown),
  fc.constantFrom(1, 1_500, 6_000).map(advance),
  fc.constant(promote),
  fc.constantFrom(true, false, false).map(setPaused),
  at.map(cancel),
  fc.tuple(at, mode, fc.boolean()).map((args) => resurrect(...args)),
]
