/**
 * Hands outcomes of calls to the ledger. An outcome is evidence: it is offered at once and shares its write with
 * whatever the handler does next; only the settle waits for it.
 */
import { describeFailure, type StoredFailure } from '../../core/failure.ts'
import type { LedgerRequest, LedgerVerdict } from '../../core/ledger.ts'

export interface Outcome {
  readonly state: 'done' | 'terminal' | 'not-executed' | 'ambiguous'
  readonly result?: string | null
  readonly failure?: StoredFailure
  readonly replayed?: boolean
  readonly supersedes?: 'same-key' | 'all' | 'none'
}

export type OutcomeRequest = Extract<LedgerRequest, { readonly kind: 'close' }>

export class EffectRecorder {
  readonly #ledger: (request: LedgerRequest) => Promise<LedgerVerdict>
  readonly #onDouble: (effect: string) => void
  readonly #underWay = new Map<Promise<unknown>, OutcomeRequest>()

  constructor(ledger: (request: LedgerRequest) => Promise<LedgerVerdict>, onDouble: (effect: string) => void) {
    this.#ledger = ledger
    this.#onDouble = onDouble
  }

  record(effect: string, id: string, outcome: Outcome): void {
    const request = requestOf(id, outcome)
    const written = this.#write(effect, request)
    this.#underWay.set(written, request)
    void written.then(() => this.#underWay.delete(written))
  }

  /** Outcomes handed over that are not durable yet. */
  get pending(): readonly OutcomeRequest[] {
    return [...this.#underWay.values()]
  }

  /** Resolves when every outcome handed over so far is durable, or was refused by a storage that is away. */
  async flush(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay.keys())
  }

  /** Whether another call of the effect is done too. */
  close(id: string, outcome: Outcome): Promise<boolean> {
    return this.#close(requestOf(id, outcome))
  }

  async #close(request: OutcomeRequest): Promise<boolean> {
    let verdict = await this.#ledger(request)
    // What came of a call is recorded, whatever there is to say against its content.
    if (verdict.kind === 'refused') verdict = await this.#ledger(plainest(request, verdict.error))
    if (verdict.kind === 'refused') throw verdict.error
    return verdict.kind === 'closed' && verdict.double
  }

  async #write(effect: string, request: OutcomeRequest): Promise<void> {
    try {
      if (await this.#close(request)) this.#onDouble(effect)
    } catch {
      // The intent stays open and the next attempt finds it in doubt, which is the truth.
    }
  }
}

function requestOf(id: string, outcome: Outcome): OutcomeRequest {
  return {
    kind: 'close',
    id,
    state: outcome.state,
    result: outcome.result ?? null,
    failure: outcome.failure ?? null,
    replayed: outcome.replayed ?? false,
    supersedes: outcome.supersedes ?? 'none',
  }
}

/** The same outcome with nothing in it that a database could refuse. */
function plainest(request: OutcomeRequest, refused: Error): OutcomeRequest {
  return { ...request, result: null, failure: describeFailure(refused) }
}
