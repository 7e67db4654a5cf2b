/**
 * The ledger of core/ledger.ts in memory, for tests of the stages above it: same verdicts, no transaction, no lease but
 * the one it is told about. The conformance suite is what holds real storages to it.
 */
import type { Intent, IntentState, LedgerRef, LedgerRequest, LedgerVerdict } from '../core/ledger.ts'

interface Row extends Omit<Intent, 'ageMs' | 'state' | 'result' | 'failure' | 'replayed' | 'ownerGone'> {
  readonly ref: string
  readonly name: string
  readonly openedAtMs: number
  state: IntentState
  result: string | null
  failure: Intent['failure']
  replayed: boolean
  ownerGone: boolean
}

export class FakeLedger {
  readonly requests: LedgerRequest[] = []
  readonly rows: Row[] = []
  readonly #memos = new Map<string, string | null>()
  /** False: whatever needs the lease is answered `lost`. */
  owned = true
  nowMs = 0
  #seed = 0
  /** Before each request is applied: throws, or changes what stands there. */
  before: (request: LedgerRequest) => void | Promise<void> = () => undefined

  async apply(request: LedgerRequest): Promise<LedgerVerdict> {
    this.requests.push(request)
    await this.before(request)
    if (request.kind !== 'close' && !this.owned) return { kind: 'lost' }
    switch (request.kind) {
      case 'open':
        return this.#open(request)
      case 'close':
        return this.#close(request)
      case 'names': {
        const names = [...new Set(this.rows.map(({ name }) => name))]
        return { kind: 'names', names, compensate: false }
      }
      case 'recall': {
        const known = this.#memos.get(refOf(request.ref))
        return { kind: 'recalled', found: known !== undefined, result: known ?? null }
      }
      case 'remember': {
        const id = refOf(request.ref)
        if (!this.#memos.has(id)) this.#memos.set(id, request.result)
        return { kind: 'remembered', result: this.#memos.get(id) ?? null }
      }
    }
  }

  /** For the runtime of each attempt on this ledger. */
  nextSeed(): number {
    this.#seed += 1
    return this.#seed
  }

  /** The states of an effect's rows, oldest first. */
  states(name: string): readonly IntentState[] {
    return this.rows.filter((row) => row.name === name).map(({ state }) => state)
  }

  #open(request: Extract<LedgerRequest, { readonly kind: 'open' }>): LedgerVerdict {
    const ref = refOf(request.ref)
    const rows = this.rows.filter((row) => row.ref === ref)
    const firstAgeMs = rows.length === 0 ? 0 : this.nowMs - (rows[0]?.openedAtMs ?? 0)
    if (rows.some(({ state, id }) => state === 'done' || !request.seenIds.includes(id))) {
      return { kind: 'known', intents: rows.map((row) => ({ ...row, ageMs: this.nowMs - row.openedAtMs })) }
    }
    for (const row of rows) if (request.absentIds.includes(row.id)) row.state = 'not-executed'
    const { id, fingerprint, input, workerId, attempt, providerKey, lease } = request
    this.rows.push({
      ref,
      id,
      name: request.ref.name,
      state: 'open',
      fingerprint,
      input,
      result: null,
      failure: null,
      openedAtMs: this.nowMs,
      jobId: lease.jobId,
      workerId,
      attempt,
      providerKey,
      replayed: false,
      ownerGone: false,
    })
    const hasOthers = this.rows.some(({ name }) => name !== request.ref.name)
    return { kind: 'opened', firstAgeMs, hasOthers }
  }

  #close(request: Extract<LedgerRequest, { readonly kind: 'close' }>): LedgerVerdict {
    const own = this.rows.find(({ id }) => id === request.id)
    if (own === undefined) return { kind: 'closed', double: false }
    const siblings = this.rows.filter((row) => row.ref === own.ref && row !== own)
    Object.assign(own, { state: request.state, result: request.result, failure: request.failure })
    own.replayed = request.replayed
    for (const row of siblings) {
      const isSame = request.supersedes === 'all' || row.providerKey === own.providerKey
      const isDoubt = row.state === 'open' || row.state === 'ambiguous'
      if (request.supersedes !== 'none' && isSame && isDoubt) row.state = 'superseded'
    }
    const isOther = (row: Row): boolean => row.providerKey === null || row.providerKey !== own.providerKey
    const double = own.state === 'done' && siblings.some((row) => row.state === 'done' && isOther(row))
    return { kind: 'closed', double }
  }
}

function refOf({ kind, keyRef, generation, name, item }: LedgerRef): string {
  return JSON.stringify([kind, keyRef, generation, name, item])
}
