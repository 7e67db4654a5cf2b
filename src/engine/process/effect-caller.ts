/**
 * Calls effects: intent → call → outcome.
 *
 *   open --opened--------------------------------------------> call → close
 *        --known: done → stored result; terminal → thrown again; other input → review
 *        --known: clear (every call before is proven absent)--> open again → call
 *        --known: in doubt --same key, window still open------> open again → call
 *                          --reconcile: present---------------> close as done
 *                                       absent, old enough----> open again → call
 *                                       unknown, or too young-> wait: the job is retried at no cost
 *                          --nothing can tell-----------------> review
 *
 * The intent is durable before the call. The outcome is handed to the ledger at once and shares its write with whatever
 * the handler does next; the attempt settles only after every outcome is durable. What is asked of the job (review,
 * wait) stands even where the handler swallows the error that says so.
 */
import { fingerprintOf } from '../../core/canonical-json.ts'
import { classifyError, statusOf, type Verdict } from '../../core/classify.ts'
import { EffectDeclined } from '../../core/control-flow.ts'
import { afterReconcile, firstStep, keyStillSafe, readIntents, type DoubtBounds } from '../../core/doubt.ts'
import type { CallOptions, Found, ResolvedEffect } from '../../core/effect.ts'
import { ChokaQError, unreachable } from '../../core/errors.ts'
import { describeFailure } from '../../core/failure.ts'
import { parseJson } from '../../core/json-image.ts'
import type { Lease } from '../../core/lease.ts'
import type { EffectOutcome, Intent, LedgerKind, LedgerRef, LedgerRequest, LedgerVerdict } from '../../core/ledger.ts'
import { renderKey } from '../../core/provider.ts'
import type { Runtime } from '../../core/runtime.ts'
import type { Tracing } from '../../core/tracing.ts'
import { boundedCall } from './call-signal.ts'
import { declined, dropped, repeats, why } from './effect-record.ts'
import { EffectRecorder, type Outcome, type OutcomeRequest } from './effect-recorder.ts'

export interface EffectServices {
  readonly runtime: Runtime
  readonly tracing: Tracing
  readonly bounds: DoubtBounds
  ledger(request: LedgerRequest): Promise<LedgerVerdict>
  jsonText(value: unknown, what: string): string
  /** The derived 128-bit key of a name under this job's key and generation. */
  derive(name: string): string
  /** Whether the worker's last confirmed heartbeat is young enough to act on its leases. */
  confirmed(): boolean
  onEffect(effect: string, outcome: EffectOutcome): void
}

export interface EffectFacts {
  readonly lease: Lease
  readonly keyRef: string
  readonly generation: number
  readonly attempt: number
  readonly workerId: string
  readonly keepMs: number
}

export interface CallGuards {
  /** Throws where the ctx may not act any more: revoked, lease lost, completed, or inside a transaction. */
  check(effect: string): void
  /** Rejects where this attempt must not act at all: something recorded stops it. `hasOthers`: as the ledger says. */
  mayAct(found: { readonly hasOthers: boolean }): Promise<void>
  signal(): AbortSignal
}

/** What an effect asks of the whole job, whatever the handler makes of the error. */
export type Demand =
  | { readonly kind: 'review'; readonly error: ChokaQError }
  | { readonly kind: 'wait'; readonly error: ChokaQError; readonly delayMs: number }

interface Call {
  readonly effect: ResolvedEffect
  readonly ref: LedgerRef
  readonly input: unknown
  readonly inputText: string
  readonly fingerprint: string
}

/** How often one call may find that the ledger changed under it before it gives up waiting for quiet. */
const maxRounds = 8

export class EffectCaller {
  readonly #facts: EffectFacts
  readonly #services: EffectServices
  readonly #guards: CallGuards
  readonly #called = new Set<string>()
  readonly #recorder: EffectRecorder
  #demand: Demand | undefined

  constructor(facts: EffectFacts, services: EffectServices, guards: CallGuards) {
    this.#facts = facts
    this.#services = services
    this.#guards = guards
    this.#recorder = new EffectRecorder(
      (request) => services.ledger(request),
      (effect) => {
        this.demandReview(
          new ChokaQError('CHOKAQ_EFFECT_DOUBLE', { effect, jobId: facts.lease.jobId }),
          effect,
          'double',
        )
      },
    )
  }

  get demand(): Demand | undefined {
    return this.#demand
  }

  /** Outcomes that are not durable yet. */
  get pending(): readonly OutcomeRequest[] {
    return this.#recorder.pending
  }

  /** Resolves when every outcome handed over so far is durable. */
  flush(): Promise<void> {
    return this.#recorder.flush()
  }

  async call(effect: ResolvedEffect, input: unknown, item = '', kind: LedgerKind = 'effect'): Promise<unknown> {
    const id = `${kind}\n${effect.name}\n${item}`
    if (this.#called.has(id)) throw new ChokaQError('CHOKAQ_EFFECT_REPEATED', { effect: effect.name, item })
    this.#called.add(id)
    const s = this.#services
    const ref = this.#ref(effect, item, kind)
    const inputText = s.jsonText(input, `The input of effect "${effect.name}"`)
    const image = parseJson(inputText)
    const fingerprint = fingerprintOf(image, (text) => s.runtime.sha256(text))
    return this.#resolve({ effect, ref, input: image, inputText, fingerprint })
  }

  #ref(effect: ResolvedEffect, item: string, kind: LedgerKind): LedgerRef {
    const { keyRef, generation } = this.#facts
    return { kind, keyRef, generation, name: effect.name, item }
  }

  /** Opens an intent, resolving what stands in the way, until it may call or knows the answer. */
  async #resolve(call: Call): Promise<unknown> {
    let seen: readonly Intent[] = []
    let absent: readonly Intent[] = []
    let rotations = 0
    for (let round = 0; round < maxRounds; round += 1) {
      const key = this.#providerKey(call, rotations)
      const id = this.#services.runtime.newId()
      const verdict = await this.#open(call, id, key, seen, absent)
      if (verdict.kind === 'opened') {
        const doubt = readIntents(seen.filter((intent) => !absent.includes(intent))).kind === 'doubt'
        // Between the decision and the commit the window may have closed; the repeat is then no longer safe.
        if (doubt && !keyStillSafe(call.effect, verdict.firstAgeMs, this.#services.bounds)) {
          await this.#recorder.close(id, { state: 'not-executed' })
          seen = []
          continue
        }
        await this.#lastLook(call, id, verdict)
        return this.#act(call, id, key, seen)
      }
      if (verdict.kind === 'refused') throw verdict.error
      if (verdict.kind !== 'known') throw this.#lost()
      await this.#guards.mayAct({ hasOthers: true })
      seen = verdict.intents
      const step = await this.#decide(call, seen)
      if ('value' in step) return step.value
      absent = step.absent
      rotations = step.rotations
    }
    throw this.#park(call, 'the record of the effect kept changing while it was decided')
  }

  async #decide(
    call: Call,
    intents: readonly Intent[],
  ): Promise<{ value: unknown } | { absent: readonly Intent[]; rotations: number }> {
    const { effect } = call
    if (intents.some((intent) => intent.fingerprint !== call.fingerprint)) {
      throw this.demandReview(
        new ChokaQError('CHOKAQ_EFFECT_INPUT_CHANGED', { effect: effect.name, jobId: this.#facts.lease.jobId }),
        effect.name,
      )
    }
    // Keys rotate only past an answer that the provider replays; how often is read off the record, so it is stable.
    const rotations = new Set(intents.filter((i) => i.replayed).map((i) => i.providerKey)).size
    const known = readIntents(intents)
    switch (known.kind) {
      case 'done':
        return { value: this.#replay(call, known.intent) }
      case 'terminal':
        throw declined(effect.name, known.intent)
      case 'clear':
        return { absent: [], rotations }
      case 'doubt':
        return this.#decideDoubt(call, intents, known.intents, rotations)
      default:
        return unreachable(known, 'known intents')
    }
  }

  async #decideDoubt(
    call: Call,
    intents: readonly Intent[],
    doubt: readonly Intent[],
    rotations: number,
  ): Promise<{ value: unknown } | { absent: readonly Intent[]; rotations: number }> {
    const { effect } = call
    const { bounds } = this.#services
    const firstAgeMs = Math.max(...intents.map(({ ageMs }) => ageMs))
    const step = firstStep(effect, doubt, firstAgeMs, bounds)
    if (step === 'repeat') return { absent: [], rotations }
    if (step === 'review') throw this.#park(call, why(effect))
    const found = await this.#reconcile(call, doubt)
    if (typeof found === 'object') return { value: await this.#adopt(call, doubt, found.present) }
    const next = afterReconcile(found, effect, doubt, bounds)
    switch (next.kind) {
      case 'repeat':
        return { absent: doubt, rotations }
      case 'wait':
        throw this.#wait(call, `reconcile says ${found}`, next.delayMs)
      case 'review':
        throw this.#park(call, next.why)
      default:
        return unreachable(next, 'step after reconcile')
    }
  }

  // ---- the call itself

  /**
   * Between the intent and the call the lease may have gone, above all where the process stood still. Nothing has left
   * the machine yet, and the intent says so.
   */
  async #lastLook({ effect }: Call, id: string, found: { readonly hasOthers: boolean }): Promise<void> {
    try {
      await this.#guards.mayAct(found)
      this.#guards.check(effect.name)
      if (!this.#services.confirmed()) throw this.#lost()
    } catch (refusal) {
      this.#record(effect, id, { state: 'not-executed', failure: describeFailure(refusal) }, 'not_executed')
      throw refusal
    }
  }

  async #act(call: Call, id: string, key: string, seen: readonly Intent[]): Promise<unknown> {
    const { effect } = call
    let value: unknown
    try {
      const as = call.ref.kind === 'compensation' ? 'compensate' : 'run'
      value = await this.#services.tracing.effect({ effect: effect.name, call: as }, async () =>
        this.#bounded(effect, key, (options) => effect.run(call.input, options)),
      )
    } catch (thrown) {
      throw this.#failed(call, id, thrown, repeats(seen, key, thrown))
    }
    this.#services.runtime.faults.reach('effect-called')
    let text: string | null
    try {
      text = value === undefined ? null : this.#services.jsonText(value, `The result of effect "${effect.name}"`)
    } catch (error) {
      // It happened. A result that cannot be kept must not make it look undone.
      this.#record(effect, id, { state: 'done', failure: dropped(effect.name, error), supersedes: 'same-key' }, 'done')
      throw new ChokaQError('CHOKAQ_EFFECT_RESULT_DROPPED', {
        effect: effect.name,
        problem: describeFailure(error).message,
      })
    }
    this.#record(effect, id, { state: 'done', result: text, supersedes: 'same-key' }, 'done')
    return text === null ? undefined : parseJson(text)
  }

  #bounded<T>(effect: ResolvedEffect, key: string, call: (options: CallOptions) => Promise<T>): Promise<T> {
    const bound = { effect: effect.name, idempotencyKey: key, timeoutMs: effect.callTimeoutMs }
    return boundedCall(this.#services.runtime, { ...bound, attemptSignal: this.#guards.signal() }, call)
  }

  #failed(call: Call, id: string, thrown: unknown, sameAgain: boolean): unknown {
    const { effect } = call
    const verdict: Verdict = classifyError(thrown, effect.provider.classify)
    const failure = describeFailure(thrown)
    switch (verdict) {
      case 'not-executed':
        this.#record(effect, id, { state: 'not-executed', failure }, 'not_executed')
        return thrown
      case 'terminal':
        this.#record(effect, id, { state: 'terminal', failure, supersedes: 'same-key' }, 'terminal')
        return new EffectDeclined(effect.name, failure.message, failure.code, { cause: thrown })
      case 'ambiguous': {
        const status = statusOf(thrown)
        const serverError = status !== undefined && status >= 500
        const replayed = serverError && sameAgain && effect.provider.keyed?.onProviderError === 'replayed'
        this.#record(effect, id, { state: 'ambiguous', failure, replayed }, 'ambiguous')
        return thrown
      }
      default:
        return unreachable(verdict, 'classification')
    }
  }

  #record(effect: ResolvedEffect, id: string, outcome: Outcome, counted: EffectOutcome): void {
    this.#services.onEffect(effect.name, counted)
    this.#recorder.record(effect.name, id, outcome)
  }

  // ---- what is known

  #replay(call: Call, intent: Intent): unknown {
    if (intent.failure !== null) {
      throw new ChokaQError('CHOKAQ_EFFECT_RESULT_DROPPED', {
        effect: call.effect.name,
        problem: intent.failure.message,
      })
    }
    this.#services.onEffect(call.effect.name, 'replayed')
    return intent.result === null ? undefined : parseJson(intent.result)
  }

  async #reconcile(call: Call, doubt: readonly Intent[]): Promise<Found<unknown>> {
    const { effect } = call
    const key = doubt.find(({ providerKey }) => providerKey !== null)?.providerKey ?? this.#providerKey(call, 0)
    try {
      const found = await this.#services.tracing.effect({ effect: effect.name, call: 'reconcile' }, async () =>
        this.#bounded(effect, key, async (options) => effect.reconcile?.(call.input, options)),
      )
      if (found === 'absent' || (typeof found === 'object' && 'present' in found)) return found
      return 'unknown'
    } catch {
      // A reconcile that fails has told nothing; it is asked again.
      return 'unknown'
    }
  }

  async #adopt(call: Call, doubt: readonly Intent[], present: unknown): Promise<unknown> {
    const newest = doubt[doubt.length - 1]
    if (newest === undefined) throw new ChokaQError('CHOKAQ_ASSERTION', { what: 'an adopted effect has no intent' })
    const text =
      present === undefined ? null : this.#services.jsonText(present, `What reconcile of "${call.effect.name}" found`)
    // Not the outcome of a call of this attempt, so whoever lost the job meanwhile leaves it to the new owner.
    this.#guards.check(call.effect.name)
    if (!this.#services.confirmed()) throw this.#lost()
    await this.#recorder.close(newest.id, { state: 'done', result: text, supersedes: 'all' })
    this.#services.onEffect(call.effect.name, 'reconciled')
    return text === null ? undefined : parseJson(text)
  }

  async #open(
    call: Call,
    id: string,
    key: string,
    seen: readonly Intent[],
    absent: readonly Intent[],
  ): Promise<LedgerVerdict> {
    const { lease, workerId, attempt, keepMs } = this.#facts
    return this.#services.ledger({
      kind: 'open',
      lease,
      ref: call.ref,
      id,
      provider: call.effect.provider.name,
      providerKey: call.effect.provider.keyed === undefined ? null : key,
      fingerprint: call.fingerprint,
      input: call.inputText,
      workerId,
      attempt,
      seenIds: seen.map((intent) => intent.id),
      absentIds: absent.map((intent) => intent.id),
      keepMs,
    })
  }

  #providerKey(call: Call, rotations: number): string {
    const { kind, name, item } = call.ref
    // As JSON, so that no item can look like another one after a rotation.
    const parts = JSON.stringify([kind, name, item, rotations])
    return renderKey(call.effect.provider, this.#services.derive(`effect\n${parts}`))
  }

  // ---- demands

  #park(call: Call, reason: string): ChokaQError {
    const { jobId } = this.#facts.lease
    const error = new ChokaQError('CHOKAQ_EFFECT_IN_DOUBT', { effect: call.effect.name, jobId, why: reason })
    return this.demandReview(error, call.effect.name)
  }

  /** Stops the whole job: a person has to look at it, whatever the handler makes of the error. */
  demandReview(error: ChokaQError, effect: string, outcome: 'review' | 'double' = 'review'): ChokaQError {
    this.#services.onEffect(effect, outcome)
    this.#demand = { kind: 'review', error }
    return error
  }

  #wait(call: Call, reason: string, delayMs: number): ChokaQError {
    const error = new ChokaQError('CHOKAQ_EFFECT_WAITING', { effect: call.effect.name, why: reason, delayMs })
    this.#services.onEffect(call.effect.name, 'waiting')
    if (this.#demand?.kind !== 'review') this.#demand = { kind: 'wait', error, delayMs }
    return error
  }

  #lost(): ChokaQError {
    return new ChokaQError('CHOKAQ_LEASE_LOST', { jobId: this.#facts.lease.jobId })
  }
}
