/**
 * The checklist: what each type declares, and the level of safety that follows from it. What was observed and what was
 * verified comes from elsewhere and can only lower a level.
 */
import { windowsOf } from './boot-check.ts'
import type { ClientConfig, WorkerConfig } from './config.ts'
import type { ResolvedEffect } from './effect.ts'
import { sideEffectAnswers, type ResolvedHandler, type SideEffects } from './handler.ts'
import { markerLifeMs } from './windows.ts'

/** Highest first. */
export type SafetyLevel =
  | 'exactly once (same database)'
  /** While the provider remembers the key, such as `effectively once (provider, 24 h)`; then a person is asked. */
  | `effectively once (provider, ${string})`
  | 'effectively once (reconcile)'
  | 'at most once + review'
  | 'at least once'

export interface ChecklistRow {
  readonly type: string
  /** 1 What is the business key? */
  readonly key: 'none' | 'job-id' | 'payload'
  readonly keyScope: string | undefined
  /** 2 Where is the key enforced? */
  readonly sideEffects: SideEffects
  /** The sentence that goes with the answer. */
  readonly enforcedBy: string
  /** 3 How long can duplicates arrive? Undefined without a key function: then there are no duplicates to speak of. */
  readonly duplicateWindowMs: number | undefined
  /** 4 What happens after partial side effects? */
  readonly whenInterrupted: 'resume' | 'review'
  readonly allowRaw: boolean
  readonly level: SafetyLevel
  /** How long a key is remembered after its job; undefined without a key. */
  readonly markerLifeMs: number | undefined
}

export function checklistRow(handler: ResolvedHandler, worker: WorkerConfig, client: ClientConfig): ChecklistRow {
  const { contract, sideEffects, whenInterrupted } = handler
  const isKeyed = contract.key !== 'none'
  return {
    type: contract.type,
    key: typeof contract.key === 'function' ? 'payload' : contract.key,
    keyScope: isKeyed ? contract.keyScope : undefined,
    sideEffects,
    enforcedBy: handler.because ?? sideEffectAnswers[sideEffects],
    duplicateWindowMs: typeof contract.key === 'function' ? contract.duplicateWindowMs : undefined,
    whenInterrupted,
    allowRaw: contract.allowRaw,
    level: levelOf(handler),
    markerLifeMs: isKeyed ? markerLifeMs(windowsOf(handler, worker, client)) : undefined,
  }
}

/** A handler that is reviewed after every abnormal end never runs twice by itself, wherever its key is enforced. */
function levelOf({ sideEffects, whenInterrupted, effects }: ResolvedHandler): SafetyLevel {
  if (whenInterrupted === 'review') return 'at most once + review'
  if (sideEffects === 'effects') return levelOfEffects([...effects.values()])
  return sideEffects === 'same-transaction' ? 'exactly once (same database)' : 'at least once'
}

/** The lowest of its effects counts. */
function levelOfEffects(effects: readonly ResolvedEffect[]): SafetyLevel {
  const unkeyed = effects.filter(({ provider }) => provider.keyed === undefined)
  if (unkeyed.some(({ reconcile }) => reconcile === undefined)) return 'at most once + review'
  if (unkeyed.length > 0) return 'effectively once (reconcile)'
  const windowMs = Math.min(...effects.map(({ provider }) => provider.keyed?.windowMs ?? 0))
  return `effectively once (provider, ${windowText(windowMs)})`
}

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const

/** '24 h', '45 d', '15 min': the largest unit of which it has two or more. */
function windowText(ms: number): string {
  if (!Number.isFinite(ms)) return 'for ever'
  const [unit, size] = units.find((each) => ms >= 2 * each[1]) ?? ['ms', 1]
  return `${Math.floor(ms / size)} ${unit}`
}
