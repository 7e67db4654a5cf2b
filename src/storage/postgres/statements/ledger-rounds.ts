/**
 * Which requests of a batch may share statements. A round runs its requests by kind: looks, intents, memos, outcomes. A
 * request that meets an earlier one of the batch at a place of the ledger comes after it: later in the round where the
 * order of kinds says so, in a later round where it does not.
 */
import { unreachable } from '../../../core/errors.ts'
import type { LedgerRef, LedgerRequest } from '../../../core/ledger.ts'

export type RequestOf<K extends LedgerRequest['kind']> = Extract<LedgerRequest, { readonly kind: K }>

/** A request with its place in the batch. */
export interface Placed<R extends LedgerRequest = LedgerRequest> {
  readonly n: number
  readonly request: R
}

/** What a request does to places of the ledger. One that adds a row to a key does not notice others that add. */
interface Touch {
  readonly phase: number
  readonly changes?: string
  readonly looksAt?: string
  readonly addsTo?: string
}

const phaseCount = 4

function touchOf(request: LedgerRequest, refOf: (id: string) => LedgerRef | undefined): Touch {
  switch (request.kind) {
    case 'names':
      return { phase: 0, looksAt: operationId(request) }
    case 'recall':
      return { phase: 0, looksAt: effectId(request.ref) }
    case 'open':
      return { phase: 1, changes: effectId(request.ref), addsTo: operationId(request.ref) }
    case 'remember':
      return { phase: 2, changes: effectId(request.ref), addsTo: operationId(request.ref) }
    case 'close': {
      const ref = refOf(request.id)
      return ref === undefined ? { phase: 3 } : { phase: 3, changes: effectId(ref) }
    }
    default:
      return unreachable(request, 'ledger request')
  }
}

/** The requests in rounds. `refOf`: the effect of an intent, by the intent's id. */
export function roundsOf(
  placed: readonly Placed[],
  refOf: (id: string) => LedgerRef | undefined,
): readonly (readonly Placed[])[] {
  // The last steps (round and phase as one number) that looked at a place, changed it, added to it.
  const looked = new Map<string, number>()
  const changed = new Map<string, number>()
  const added = new Map<string, number>()
  const latest = (...steps: readonly (number | undefined)[]): number =>
    steps.reduce<number>((last, step) => Math.max(last, step ?? -1), -1)
  const rounds: Placed[][] = []
  for (const each of placed) {
    const { phase, changes, looksAt, addsTo } = touchOf(each.request, refOf)
    const before = latest(
      ...(changes === undefined ? [] : [looked.get(changes), changed.get(changes)]),
      ...(looksAt === undefined ? [] : [changed.get(looksAt), added.get(looksAt)]),
      ...(addsTo === undefined ? [] : [looked.get(addsTo)]),
    )
    const round = before < 0 ? 0 : Math.floor(before / phaseCount) + (before % phaseCount < phase ? 0 : 1)
    const step = round * phaseCount + phase
    if (changes !== undefined) changed.set(changes, step)
    if (looksAt !== undefined) looked.set(looksAt, latest(step, looked.get(looksAt)))
    if (addsTo !== undefined) added.set(addsTo, latest(step, added.get(addsTo)))
    ;(rounds[round] ??= []).push(each)
  }
  return rounds
}

function operationId({ keyRef, generation }: Pick<LedgerRef, 'keyRef' | 'generation'>): string {
  return `${keyRef}/${generation}`
}

/** A name may hold any character; its length tells where it ends. */
export function effectId({ keyRef, generation, kind, name, item }: LedgerRef): string {
  return `${keyRef}/${generation}/${kind}/${name.length}/${name}/${item}`
}
