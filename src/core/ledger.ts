/**
 * The ledger of effects: what was about to happen, and what came of it. One row per call (an intent), identified by
 * (key, generation, name, item); memos and checkpoints of transactions are rows of the same table by kind.
 *
 *   (nothing) --open--> open --close--> done | terminal | not-executed
 *                       open --close--> ambiguous      the call ended, its outcome is unknown
 *                       open | ambiguous --close or resolve--> done | not-executed | abandoned
 *
 * Invariants:
 * - An intent is inserted only under its lease, in a transaction that has the lease row locked, and is committed before
 *   the call. Its outcome compares the intent's own id and is recorded whoever holds the lease by then: it is evidence.
 * - `open` and `ambiguous` are *in doubt*. While one is, its job can neither complete nor leave hot without a marker
 *   in_doubt.
 * - Two rows `done` of one effect are a double action: the second close says so and the job goes to review.
 */
import type { StoredFailure } from './failure.ts'
import type { Lease } from './lease.ts'

export const intentStates = [
  'open',
  'ambiguous',
  'not-executed',
  'done',
  'terminal',
  'superseded',
  'abandoned',
] as const
export type IntentState = (typeof intentStates)[number]

/** `effect` and `compensation` act on the world; `memo` and `checkpoint` only remember. */
export type LedgerKind = 'effect' | 'compensation' | 'memo' | 'checkpoint'

export interface LedgerRef {
  readonly kind: LedgerKind
  /** Hash of the business key, or `job:` and the job's id where it has none (memos and checkpoints only). */
  readonly keyRef: string
  readonly generation: number
  readonly name: string
  /** '' where the effect is called once. */
  readonly item: string
}

export interface Intent {
  readonly id: string
  readonly state: IntentState
  readonly fingerprint: string
  /** JSON text of the input. */
  readonly input: string
  /** JSON text; null until done. */
  readonly result: string | null
  readonly failure: StoredFailure | null
  /** By the storage's clock, at the time of the verdict. */
  readonly ageMs: number
  readonly jobId: string
  readonly workerId: string
  readonly attempt: number
  readonly providerKey: string | null
  /** The provider stored an error under the key and replays it: a repeat of the key cannot succeed. */
  readonly replayed: boolean
  /** The worker that wrote it is proven dead: no late call of it can still arrive. */
  readonly ownerGone: boolean
}

/** The name of the checkpoint by which a review decision asks the worker to undo a job's effects. */
export const compensateName = '$compensate'

/** A row of the ledger as operators see it. */
export interface LedgerRecord {
  readonly id: string
  readonly kind: LedgerKind
  readonly name: string
  readonly item: string
  readonly generation: number
  readonly state: IntentState
  readonly provider: string
  readonly providerKey: string | null
  readonly jobId: string
  readonly workerId: string
  readonly attempt: number
  readonly ownerGone: boolean
  readonly replayed: boolean
  readonly input: string
  readonly result: string | null
  readonly failure: StoredFailure | null
  readonly openedAtMs: number
  readonly closedAtMs: number | null
}

export type LedgerRequest =
  | {
      readonly kind: 'open'
      readonly lease: Lease
      readonly ref: LedgerRef
      /** A fresh id: the row's own. */
      readonly id: string
      readonly provider: string
      readonly providerKey: string | null
      readonly fingerprint: string
      readonly input: string
      readonly workerId: string
      readonly attempt: number
      /** Intents this caller has seen and decided about. Any other row of the effect makes the verdict `known`. */
      readonly seenIds: readonly string[]
      /** Of those, the ones that are proven absent: they become `not-executed` with this insert. */
      readonly absentIds: readonly string[]
      /** How long the row lives after the job and its marker are gone. */
      readonly keepMs: number
    }
  | {
      readonly kind: 'close'
      readonly id: string
      readonly state: 'done' | 'terminal' | 'not-executed' | 'ambiguous'
      readonly result: string | null
      readonly failure: StoredFailure | null
      readonly replayed: boolean
      /**
       * Which siblings in doubt are the same action and end with this one: those under the same provider key (its own
       * call came back), or all (reconcile found the action).
       */
      readonly supersedes: 'same-key' | 'all' | 'none'
    }
  /** Which effects have rows under the key and generation, and whether a person asked to undo them. */
  | { readonly kind: 'names'; readonly lease: Lease; readonly keyRef: string; readonly generation: number }
  | { readonly kind: 'recall'; readonly lease: Lease; readonly ref: LedgerRef }
  | {
      readonly kind: 'remember'
      readonly lease: Lease
      readonly ref: LedgerRef
      readonly id: string
      readonly result: string | null
      readonly workerId: string
      readonly attempt: number
      readonly keepMs: number
    }

export type LedgerVerdict =
  /**
   * The intent is durable. `firstAgeMs` is the age of the effect's oldest intent: 0 for the first. `hasOthers`: effects of
   * other names may be recorded under the key and generation; `names` tells which.
   */
  | { readonly kind: 'opened'; readonly firstAgeMs: number; readonly hasOthers: boolean }
  /** Oldest first; nothing was inserted. */
  | { readonly kind: 'known'; readonly intents: readonly Intent[] }
  /** `double`: another intent of the same effect, not under the same provider key, is done too. */
  | { readonly kind: 'closed'; readonly double: boolean }
  | { readonly kind: 'names'; readonly names: readonly string[]; readonly compensate: boolean }
  | { readonly kind: 'recalled'; readonly found: boolean; readonly result: string | null }
  /** `result` is what stands: another attempt's, where it was remembered first. */
  | { readonly kind: 'remembered'; readonly result: string | null }
  | { readonly kind: 'lost' }
  /** The database refuses this request alone; nothing changed. As busy: somebody has its rows locked, ask again. */
  | { readonly kind: 'refused'; readonly error: Error }

/** What became of a call of an effect: the outcomes of `chokaq.effects`. */
export type EffectOutcome =
  'done' | 'replayed' | 'reconciled' | 'terminal' | 'not_executed' | 'ambiguous' | 'waiting' | 'review' | 'double'
