/**
 * All that one attempt does through the ledger: its effects, its memos, and what they ask of the job in the end.
 *
 *   check()   before the handler: a recorded effect that is no longer declared stops it; a wish to compensate runs instead
 *   calls     what ctx.effects gives
 *   finish()  after the handler: outcomes durable, nothing unawaited; a review or a wait that an effect asked for stands,
 *             whatever the handler made of its error
 */
import { ChokaQError, unreachable } from '../../core/errors.ts'
import { describeFailure } from '../../core/failure.ts'
import type { ResolvedEffect } from '../../core/effect.ts'
import { parseJson } from '../../core/json-image.ts'
import type { LedgerRecord, LedgerRef } from '../../core/ledger.ts'
import type { AttemptEnd } from '../../core/outcome.ts'
import { EffectCaller, type EffectFacts, type EffectServices } from './effect-caller.ts'

export interface ScopeServices extends EffectServices {
  /** The job's ledger rows, for compensation. */
  records(): Promise<readonly LedgerRecord[]>
}

export interface ScopeGuards {
  /** Throws where the ctx may not act any more: revoked, lease lost, completed, or inside a transaction. */
  check(effect: string): void
  signal(): AbortSignal
}

type EffectCall = (input: unknown, options?: { readonly item?: string }) => Promise<unknown>

export class EffectScope {
  readonly #facts: EffectFacts
  readonly #effects: ReadonlyMap<string, ResolvedEffect>
  readonly #services: ScopeServices
  readonly #caller: EffectCaller
  readonly #guards: ScopeGuards
  readonly #memos = new Set<string>()
  readonly calls: Readonly<Record<string, EffectCall>>

  constructor(
    facts: EffectFacts,
    effects: ReadonlyMap<string, ResolvedEffect>,
    services: ScopeServices,
    guards: ScopeGuards,
  ) {
    this.#facts = facts
    this.#effects = effects
    this.#services = services
    this.#guards = guards
    this.#caller = new EffectCaller(facts, services, () => guards.signal())
    const calls: Record<string, EffectCall> = Object.create(null) as Record<string, EffectCall>
    for (const [key, effect] of effects) {
      calls[key] = async (input, options) => {
        guards.check(effect.name)
        return this.#caller.call(effect, input, options?.item)
      }
    }
    this.calls = Object.freeze(calls)
  }

  /** What ends the attempt before its handler runs; undefined where the handler may run. */
  async check(): Promise<AttemptEnd | undefined> {
    const { lease, keyRef, generation } = this.#facts
    const verdict = await this.#services.ledger({ kind: 'names', lease, keyRef, generation })
    if (verdict.kind !== 'names') return { kind: 'threw', thrown: this.#lost() }
    const declared = new Set(Array.from(this.#effects.values(), ({ name }) => name))
    const orphans = verdict.names.filter((name) => !declared.has(name))
    if (orphans.length > 0) {
      const error = new ChokaQError('CHOKAQ_EFFECT_ORPHANED', { effects: orphans, jobId: lease.jobId })
      return { kind: 'parked', failure: describeFailure(error) }
    }
    return verdict.compensate ? this.#compensate() : undefined
  }

  async memo(name: string, compute: () => unknown): Promise<unknown> {
    if (this.#memos.has(name)) throw new ChokaQError('CHOKAQ_MEMO_REPEATED', { name })
    this.#memos.add(name)
    const { lease, keyRef, generation, workerId, attempt, keepMs } = this.#facts
    const ref: LedgerRef = { kind: 'memo', keyRef, generation, name, item: '' }
    // The first attempt of a job without effects before it cannot have a memo: one look less on the usual way.
    const known = await this.#services.ledger({ kind: 'recall', lease, ref })
    if (known.kind === 'recalled' && known.found) return read(known.result)
    if (known.kind === 'lost') throw this.#lost()
    const value = await compute()
    const result = value === undefined ? null : this.#services.jsonText(value, `The memo "${name}"`)
    const id = this.#services.runtime.newId()
    const kept = await this.#services.ledger({ kind: 'remember', lease, ref, id, result, workerId, attempt, keepMs })
    if (kept.kind !== 'remembered') throw this.#lost()
    return read(kept.result)
  }

  async finish(end: AttemptEnd): Promise<AttemptEnd> {
    const [unawaited] = this.#caller.underWay
    await this.#caller.flush()
    if (end.kind === 'aborted' && end.by === 'lease-lost') return end
    const { demand } = this.#caller
    if (demand !== undefined) {
      const failure = describeFailure(demand.error)
      switch (demand.kind) {
        case 'review':
          return { kind: 'parked', failure }
        case 'wait':
          // A cancel or a shutdown goes first: both leave the doubt in the ledger, where the next attempt finds it.
          return end.kind === 'aborted' ? end : { kind: 'waiting', delayMs: demand.delayMs, failure }
        default:
          return unreachable(demand, 'demand of an effect')
      }
    }
    if (unawaited !== undefined && end.kind === 'returned') {
      const { jobId } = this.#facts.lease
      return { kind: 'threw', thrown: new ChokaQError('CHOKAQ_EFFECT_UNAWAITED', { effect: unawaited, jobId }) }
    }
    return end
  }

  /** Undoes what is done, newest first; each undoing is an effect of its own, so a crash in it is resumed. */
  async #compensate(): Promise<AttemptEnd> {
    const byName = new Map(Array.from(this.#effects.values(), (effect) => [effect.name, effect]))
    const { generation } = this.#facts
    const done = (await this.#services.records()).filter(
      (row) => row.kind === 'effect' && row.state === 'done' && row.generation === generation,
    )
    try {
      for (const row of [...done].reverse()) {
        const effect = byName.get(row.name)
        if (effect?.compensate === undefined) {
          const error = new ChokaQError('CHOKAQ_EFFECT_IN_DOUBT', {
            effect: row.name,
            jobId: this.#facts.lease.jobId,
            why: 'it happened and is to be undone, but the effect declares no compensate',
          })
          return { kind: 'parked', failure: describeFailure(error) }
        }
        this.#guards.check(effect.name)
        await this.#caller.call(
          undoing(effect),
          { of: row.id, input: read(row.input), result: read(row.result) },
          row.item,
          'compensation',
        )
      }
    } catch (thrown) {
      return this.finish({ kind: 'threw', thrown })
    }
    return this.finish({ kind: 'returned', result: null, children: [], compensated: true })
  }

  #lost(): ChokaQError {
    return new ChokaQError('CHOKAQ_LEASE_LOST', { jobId: this.#facts.lease.jobId })
  }
}

/** The effect that undoes another: same provider and key rules, its own identity by kind. */
function undoing(effect: ResolvedEffect): ResolvedEffect {
  const { compensate } = effect
  return {
    ...effect,
    reconcile: undefined,
    run: async (input, options) => {
      const { input: of, result } = input as { readonly input: unknown; readonly result: unknown }
      await compensate?.(of, result, options)
    },
  }
}

function read(text: string | null): unknown {
  return text === null ? undefined : parseJson(text)
}
