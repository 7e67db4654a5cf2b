/**
 * Hands outcomes of calls to the ledger. An outcome is evidence: it is offered at once and shares its write with
 * whatever the handler does next; only the settle waits for it.
 */
import type { StoredFailure } from '../../core/failure.ts'
import type { LedgerRequest, LedgerVerdict } from '../../core/ledger.ts'

export interface Outcome {
  readonly state: 'done' | 'terminal' | 'not-executed' | 'ambiguous'
  readonly result?: string | null
  readonly failure?: StoredFailure
  readonly replayed?: boolean
  readonly supersedes?: 'same-key' | 'all' | 'none'
}

export class EffectRecorder {
  readonly #ledger: (request: LedgerRequest) => Promise<LedgerVerdict>
  readonly #onDouble: (effect: string) => void
  readonly #underWay = new Set<Promise<unknown>>()

  constructor(ledger: (request: LedgerRequest) => Promise<LedgerVerdict>, onDouble: (effect: string) => void) {
    this.#ledger = ledger
    this.#onDouble = onDouble
  }

  record(effect: string, id: string, outcome: Outcome): void {
    const written = this.#write(effect, id, outcome)
    this.#underWay.add(written)
    void written.then(() => this.#underWay.delete(written))
  }

  /** Resolves when every outcome handed over so far is durable, or was refused by a storage that is away. */
  async flush(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
  }

  /** Whether another call of the effect is done too. */
  async close(id: string, outcome: Outcome): Promise<boolean> {
    const verdict = await this.#ledger({
      kind: 'close',
      id,
      state: outcome.state,
      result: outcome.result ?? null,
      failure: outcome.failure ?? null,
      replayed: outcome.replayed ?? false,
      supersedes: outcome.supersedes ?? 'none',
    })
    return verdict.kind === 'closed' && verdict.double
  }

  async #write(effect: string, id: string, outcome: Outcome): Promise<void> {
    try {
      if (await this.close(id, outcome)) this.#onDouble(effect)
    } catch {
      // The intent stays open and the next attempt finds it in doubt, which is the truth.
    }
  }
}
