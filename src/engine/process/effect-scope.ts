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
import type { LedgerRecord, LedgerRef, LedgerVerdict } from '../../core/ledger.ts'
import type { AttemptEnd } from '../../core/outcome.ts'
import { EffectCaller, type CallGuards, type EffectFacts, type EffectServices } from './effect-caller.ts'
import type { OutcomeRequest } from './effect-recorder.ts'
import { refuseUnstorable } from './record-name.ts'

export interface ScopeServices extends EffectServices {
  /** How long a call that the handler left behind may take to come back before its job is settled without it. */
  readonly graceMs: number
  /** The job's ledger rows, for compensation. */
  records(): Promise<readonly LedgerRecord[]>
}

export type ScopeGuards = Omit<CallGuards, 'mayAct'>

/** One call that has not come back. */
interface Under {
  readonly effect: string
  readonly ended: Promise<unknown>
  /** What the handler holds. */
  readonly given: Promise<unknown>
}

/** More rows than one look at the record gives. */
const maxUndone = 1_000

type EffectCall = (input: unknown, options?: { readonly item?: string }) => Promise<unknown>

export class EffectScope {
  readonly #facts: EffectFacts
  readonly #effects: ReadonlyMap<string, ResolvedEffect>
  readonly #services: ScopeServices
  readonly #caller: EffectCaller
  readonly #guards: ScopeGuards
  readonly #memos = new Set<string>()
  readonly #underWay = new Set<Under>()
  #checked: Promise<void> | undefined
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
    this.#caller = new EffectCaller(facts, services, {
      check: (effect) => {
        guards.check(effect)
      },
      mayAct: (found) => this.#mayAct(found),
      signal: () => guards.signal(),
    })
    const calls: Record<string, EffectCall> = Object.create(null) as Record<string, EffectCall>
    for (const [key, effect] of effects) {
      calls[key] = (input, options) => this.#track(effect.name, this.#call(effect, input, options?.item))
    }
    this.calls = Object.freeze(calls)
  }

  async #call(effect: ResolvedEffect, input: unknown, item: string | undefined): Promise<unknown> {
    this.#guards.check(effect.name)
    if (item !== undefined) refuseUnstorable('item', item, 0)
    return this.#caller.call(effect, input, item)
  }

  #track(effect: string, ended: Promise<unknown>): Promise<unknown> {
    const under: Under = { effect, ended, given: ended.then((value) => value) }
    const gone = (): void => void this.#underWay.delete(under)
    this.#underWay.add(under)
    ended.then(gone, gone)
    return under.given
  }

  /**
   * The first attempt of a job may inherit the record of an earlier job of its key. The ledger says with its first intent
   * whether there is one, which is rare. Later attempts looked in check().
   */
  #mayAct({ hasOthers }: { readonly hasOthers: boolean }): Promise<void> {
    this.#checked ??= hasOthers ? this.#refuseOrphans() : Promise.resolve()
    return this.#checked
  }

  async #refuseOrphans(): Promise<void> {
    const { lease, keyRef, generation } = this.#facts
    const verdict = await this.#services.ledger({ kind: 'names', lease, keyRef, generation })
    if (verdict.kind !== 'names') throw this.#unanswered(verdict)
    const [orphan, ...others] = this.#orphansOf(verdict.names)
    if (orphan === undefined) return
    const error = new ChokaQError('CHOKAQ_EFFECT_ORPHANED', { effects: [orphan, ...others], jobId: lease.jobId })
    throw this.#caller.demandReview(error, orphan)
  }

  #orphansOf(names: readonly string[]): readonly string[] {
    const declared = new Set(Array.from(this.#effects.values(), ({ name }) => name))
    return names.filter((name) => !declared.has(name))
  }

  /**
   * What a completion in the handler's own transaction has to record first: outcomes that are on their way. Throws where
   * an effect has not come back.
   */
  outcomes(): readonly OutcomeRequest[] {
    this.#refuseUnawaited()
    return this.#caller.pending
  }

  #refuseUnawaited(): void {
    const [under] = this.#underWay
    if (under === undefined) return
    throw new ChokaQError('CHOKAQ_EFFECT_UNAWAITED', { effect: under.effect, jobId: this.#facts.lease.jobId })
  }

  /** What ends the attempt before its handler runs; undefined where the handler may run. */
  async check(): Promise<AttemptEnd | undefined> {
    const { lease, keyRef, generation } = this.#facts
    const verdict = await this.#services.ledger({ kind: 'names', lease, keyRef, generation })
    if (verdict.kind !== 'names') return { kind: 'threw', thrown: this.#unanswered(verdict) }
    this.#checked = Promise.resolve()
    const orphans = this.#orphansOf(verdict.names)
    if (orphans.length > 0) {
      const error = new ChokaQError('CHOKAQ_EFFECT_ORPHANED', { effects: orphans, jobId: lease.jobId })
      return { kind: 'parked', failure: describeFailure(error) }
    }
    return verdict.compensate ? this.#compensate() : undefined
  }

  async memo(name: string, compute: () => unknown): Promise<unknown> {
    refuseUnstorable('name', name, 1)
    if (this.#memos.has(name)) throw new ChokaQError('CHOKAQ_MEMO_REPEATED', { name })
    this.#memos.add(name)
    const { lease, keyRef, generation, workerId, attempt, keepMs } = this.#facts
    const ref: LedgerRef = { kind: 'memo', keyRef, generation, name, item: '' }
    const known = await this.#services.ledger({ kind: 'recall', lease, ref })
    if (known.kind === 'recalled' && known.found) return read(known.result)
    if (known.kind !== 'recalled') throw this.#unanswered(known)
    const value = await compute()
    const result = value === undefined ? null : this.#services.jsonText(value, `The memo "${name}"`)
    const id = this.#services.runtime.newId()
    const kept = await this.#services.ledger({ kind: 'remember', lease, ref, id, result, workerId, attempt, keepMs })
    if (kept.kind !== 'remembered') throw this.#unanswered(kept)
    return read(kept.result)
  }

  async finish(end: AttemptEnd): Promise<AttemptEnd> {
    const [unawaited] = this.#underWay
    // Nobody awaits them any more: their rejection must not end the process.
    for (const { given } of this.#underWay) given.catch(() => undefined)
    if (end.kind === 'returned' || end.kind === 'threw') await this.#quiet()
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
      return { kind: 'threw', thrown: new ChokaQError('CHOKAQ_EFFECT_UNAWAITED', { effect: unawaited.effect, jobId }) }
    }
    return end
  }

  /** Of calls made together, one may fail while the others are under way: what came of them is worth a short wait. */
  async #quiet(): Promise<void> {
    if (this.#underWay.size === 0) return
    const { runtime, graceMs } = this.#services
    await new Promise<void>((resolve) => {
      const timer = runtime.scheduler.after(graceMs, resolve)
      void Promise.allSettled(Array.from(this.#underWay, ({ ended }) => ended)).then(() => {
        timer.cancel()
        resolve()
      })
    })
  }

  /** Undoes what is done, newest first; each undoing is an effect of its own, so a crash in it is resumed. */
  async #compensate(): Promise<AttemptEnd> {
    const byName = new Map(Array.from(this.#effects.values(), (effect) => [effect.name, effect]))
    const { generation } = this.#facts
    const records = await this.#services.records()
    if (records.length >= maxUndone) {
      return this.#cannotUndo('', `its key has ${maxUndone} recorded calls or more, which is more than one job undoes`)
    }
    const done = records.filter((row) => row.kind === 'effect' && row.state === 'done' && row.generation === generation)
    const actions = new Map<string, LedgerRecord>()
    for (const row of [...done].reverse()) {
      const id = `${row.name}\n${row.item}`
      const newer = actions.get(id)
      if (newer === undefined) actions.set(id, row)
      // Two calls under one provider key are one action, told twice.
      else if (row.providerKey === null || row.providerKey !== newer.providerKey) {
        return this.#cannotUndo(row.name, 'it happened twice, which only a person can undo')
      }
    }
    try {
      for (const row of actions.values()) {
        const effect = byName.get(row.name)
        if (effect?.compensate === undefined) {
          return this.#cannotUndo(row.name, 'it happened and is to be undone, but the effect declares no compensate')
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

  #cannotUndo(effect: string, why: string): AttemptEnd {
    const { jobId } = this.#facts.lease
    return {
      kind: 'parked',
      failure: describeFailure(new ChokaQError('CHOKAQ_EFFECT_IN_DOUBT', { effect, jobId, why })),
    }
  }

  #unanswered(verdict: LedgerVerdict): Error {
    if (verdict.kind === 'refused') return verdict.error
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
