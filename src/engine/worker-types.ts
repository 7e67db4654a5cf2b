/** The types one worker runs: handler and policy by type, and what is told to the storage about them. */
import { checkBoot, policyFor, windowsOf } from '../core/boot-check.ts'
import type { ClientConfig, WorkerConfig } from '../core/config.ts'
import { ChokaQError } from '../core/errors.ts'
import type { ResolvedEffect } from '../core/effect.ts'
import { settleAfterMs } from '../core/doubt.ts'
import { handlerOf, type Handler, type ResolvedHandler } from '../core/handler.ts'
import type { JobTypeRow, TypePolicy } from '../core/storage.ts'
import { continueWithinMs, leaseSpanMs, type WindowFinding } from '../core/windows.ts'

export interface RegisteredType {
  readonly handler: ResolvedHandler
  readonly policy: TypePolicy
  /** How long the ledger keeps this type's rows after the job and its marker are gone: U + L. */
  readonly ledgerKeepMs: number
  /** For the operators' `continue`. */
  readonly continueWithinMs: number
  /** What is told to the storage of its effects. */
  readonly effects: readonly object[]
  /** What this worker's boot check warned of, so that `chokaq doctor` can tell without the code. */
  readonly bootWarnings: readonly WindowFinding[]
}

const maxTypeCount = 500

export class RegisteredTypes {
  /** The same array for the worker's life: the storage caches by identity. */
  readonly policies: readonly TypePolicy[]
  readonly handlers: readonly ResolvedHandler[]
  /** Queues of the contracts, in the order of the handlers. */
  readonly queues: readonly string[]
  readonly #byType = new Map<string, RegisteredType>()

  constructor(handlers: readonly Handler[], worker: WorkerConfig, client: ClientConfig) {
    if (handlers.length === 0 || handlers.length > maxTypeCount) {
      throw new ChokaQError('CHOKAQ_CONFIG_INVALID', {
        problem: `createWorker got ${handlers.length} handlers; give it 1 to ${maxTypeCount}.`,
      })
    }
    for (const each of handlers) {
      const handler = handlerOf(each)
      const { type } = handler.contract
      if (this.#byType.has(type)) {
        throw new ChokaQError('CHOKAQ_HANDLER_INVALID', {
          type,
          problem: 'it has two handlers in one worker. Keep one.',
        })
      }
      const windows = windowsOf(handler, worker, client)
      this.#byType.set(type, {
        handler,
        policy: policyFor(handler, worker, client),
        ledgerKeepMs: windows.duplicateWindowMs + leaseSpanMs(windows),
        continueWithinMs: continueWithinMs(windows),
        effects: Array.from(handler.effects.values(), (effect) => effectAnswers(effect, settleAfterMs(effect, worker))),
        bootWarnings: checkBoot([handler], worker, client).warnings,
      })
    }
    const all = [...this.#byType.values()]
    this.policies = all.map(({ policy }) => policy)
    this.handlers = all.map(({ handler }) => handler)
    this.queues = [...new Set(this.handlers.map(({ contract }) => contract.queue))]
  }

  /** Own entries of a map only: a payload or a row never selects code in another way. */
  get(type: string): RegisteredType | undefined {
    return this.#byType.get(type)
  }

  rows(): readonly JobTypeRow[] {
    return [...this.#byType.values()].map(({ handler, ...of }) => ({
      type: handler.contract.type,
      queue: handler.contract.queue,
      keyed: handler.contract.key !== 'none',
      keyScope: handler.contract.keyScope,
      allowRaw: handler.contract.allowRaw,
      answers: JSON.stringify(answersOf({ handler, ...of })),
      payloadSchema: jsonSchemaOf(handler),
    }))
  }
}

function answersOf({ handler, policy, continueWithinMs, effects, bootWarnings }: RegisteredType): object {
  return {
    key: typeof handler.contract.key === 'function' ? 'payload' : handler.contract.key,
    duplicateWindowMs: handler.contract.duplicateWindowMs,
    sideEffects: handler.sideEffects,
    because: handler.because ?? null,
    effects,
    whenInterrupted: handler.whenInterrupted,
    onDuplicate: handler.onDuplicate,
    keepsCompleted: handler.keepsCompleted,
    retry: handler.retry,
    timeoutMs: policy.timeoutMs,
    markerLifeMs: policy.markerLifeMs,
    continueWithinMs,
    bootWarnings,
  }
}

function effectAnswers(effect: ResolvedEffect, settleMs: number): object {
  const { keyed } = effect.provider
  return {
    name: effect.name,
    provider: effect.provider.name,
    takesKey: keyed !== undefined,
    windowMs: keyed !== undefined && Number.isFinite(keyed.windowMs) ? keyed.windowMs : null,
    settleAfterMs: settleMs,
    reconciles: effect.reconcile !== undefined,
    compensates: effect.compensate !== undefined,
  }
}

/** JSON Schema where the schema library offers it (Standard JSON Schema), else null. */
function jsonSchemaOf(handler: ResolvedHandler): string | null {
  const standard = handler.contract.payload['~standard'] as {
    readonly jsonSchema?: { input?(options: { target: string }): unknown }
  }
  try {
    const schema = standard.jsonSchema?.input?.({ target: 'draft-2020-12' })
    return schema === undefined ? null : JSON.stringify(schema)
  } catch {
    // Some schemas (transforms, custom types) have no JSON Schema; the worker still validates with the schema itself.
    return null
  }
}
