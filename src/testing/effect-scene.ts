/** One attempt with effects over a fake ledger: what its stage needs and nothing of a worker. */
import { defineEffect, effectOf, type Effect, type EffectDefinition, type ResolvedEffect } from '../core/effect.ts'
import { ChokaQError } from '../core/errors.ts'
import { toJsonText } from '../core/json-image.ts'
import { effectKey } from '../core/key-canon.ts'
import type { EffectOutcome, LedgerRecord } from '../core/ledger.ts'
import type { AttemptEnd } from '../core/outcome.ts'
import { defineProvider, noKey } from '../core/provider.ts'
import { Tracing } from '../core/tracing.ts'
import { EffectScope } from '../engine/process/effect-scope.ts'
import { createFakeRuntime, type FakeRuntime } from './fake-runtime.ts'
import { FakeLedger } from './fake-ledger.ts'

export class EffectScene {
  readonly runtime: FakeRuntime
  readonly ledger: FakeLedger
  readonly outcomes: string[] = []
  readonly controller = new AbortController()
  /** What the ctx says when it is asked whether it may act. */
  check: (effect: string) => void = () => undefined
  confirmed = true
  records: readonly LedgerRecord[] = []
  readonly scope: EffectScope

  constructor(effects: Readonly<Record<string, Effect<never, unknown>>>, ledger = new FakeLedger(), attempt = 1) {
    this.ledger = ledger
    // Scenes share a ledger, and their ids must differ.
    this.runtime = createFakeRuntime({ seed: ledger.nextSeed() })
    const sha256 = (text: string): string => this.runtime.sha256(text)
    const facts = { keyRef: 'key', generation: 1, attempt, workerId: `w${attempt}`, keepMs: 1_000 }
    this.scope = new EffectScope(
      { ...facts, lease: { jobId: 'job-1', token: attempt } },
      new Map(Object.entries(effects).map(([key, effect]) => [key, resolved(effect)])),
      {
        runtime: this.runtime,
        tracing: new Tracing(),
        bounds: { fenceAfterMs: 20_000, deadAfterMs: 30_000, sweepMs: 5_000 },
        graceMs: 3_000,
        confirmed: () => this.confirmed,
        ledger: (request) => this.ledger.apply(request),
        jsonText: (value, what) => toJsonText(value, what, { maxBytes: 1_000, byteLength: (text) => text.length }),
        derive: (name) => effectKey({ jobId: 'job-1', generation: 1, keyHash: 'key', name }, sha256),
        onEffect: (effect: string, outcome: EffectOutcome) => void this.outcomes.push(`${effect} ${outcome}`),
        records: async () => this.records,
      },
      {
        check: (effect) => {
          this.check(effect)
        },
        signal: () => this.controller.signal,
      },
    )
  }

  call(name: string, input: unknown = {}, item?: string): Promise<unknown> {
    const effect = this.scope.calls[name]
    if (effect === undefined) throw new ChokaQError('CHOKAQ_ASSERTION', { what: `no effect ${name}` })
    return effect(input, item === undefined ? undefined : { item })
  }

  /** The next attempt on the same record. */
  next(effects: Readonly<Record<string, Effect<never, unknown>>>, attempt = 2): EffectScene {
    return new EffectScene(effects, this.ledger, attempt)
  }

  finish(end: AttemptEnd): Promise<AttemptEnd> {
    return this.runtime.complete(this.scope.finish(end))
  }
}

function resolved(effect: Effect<never, unknown>): ResolvedEffect {
  const found = effectOf(effect)
  if (found === undefined) throw new ChokaQError('CHOKAQ_ASSERTION', { what: 'an effect' })
  return found
}

export const acme = defineProvider({
  name: 'acme',
  keyFormat: { maxLength: 64 },
  dedupeWindow: '24h',
  onProviderError: 'replayed',
})
export const keyless = noKey('ses')
export const returned: AttemptEnd = { kind: 'returned', result: null, children: [] }
/** What the effects of the running test were called with. */
export const calls: { input: unknown; key: string }[] = []

type Definition = Partial<EffectDefinition<unknown, unknown>>

/** An effect that records its calls and gives `charge-<n>`. Forgets the calls before. */
export function effect(change: Definition = {}): Effect<unknown, unknown> {
  calls.length = 0
  return defineEffect<unknown, unknown>({
    name: 'charge',
    provider: acme,
    run: async (input, { idempotencyKey }) => {
      calls.push({ input, key: idempotencyKey })
      return { id: `charge-${calls.length}` }
    },
    ...change,
  })
}

export function failing(error: unknown, change: Definition = {}): Effect<unknown, unknown> {
  const run = async (): Promise<unknown> => {
    calls.push({ input: undefined, key: '' })
    throw error
  }
  return effect({ run, ...change })
}

export async function refusalOf(call: Promise<unknown>): Promise<ChokaQError> {
  const thrown: unknown = await call.catch((error: unknown) => error)
  if (thrown instanceof ChokaQError) return thrown as ChokaQError
  throw new ChokaQError('CHOKAQ_ASSERTION', { what: `refused by ChokaQ, not with ${String(thrown)}` })
}

/** The connection broke in mid-call: nobody knows. */
export const reset = Object.assign(new TypeError('socket hang up'), { code: 'ECONNRESET' })
