/**
 * The checklist: what each type declares, and the level of safety that follows from it. What was observed and what was
 * verified comes from elsewhere and can only lower a level.
 */
import { windowsOf } from './boot-check.ts'
import type { ClientConfig, WorkerConfig } from './config.ts'
import type { ResolvedEffect } from './effect.ts'
import { sideEffectAnswers, type ResolvedHandler, type SideEffects } from './handler.ts'
import type { ObservedEffect } from './inspector.ts'
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
    level: safetyLevel(declaredAnswers(handler)),
    markerLifeMs: isKeyed ? markerLifeMs(windowsOf(handler, worker, client)) : undefined,
  }
}

/** What the level of a type follows from: of its handler, or as a worker stored it with the type. */
export interface LevelAnswers {
  readonly sideEffects: string
  readonly whenInterrupted: string
  readonly effects: readonly {
    readonly takesKey: boolean
    /** How long the provider remembers a key; null for ever, or where it takes none. */
    readonly windowMs: number | null
    readonly reconciles: boolean
  }[]
}

/** The same, with the effects' names. */
export interface NamedAnswers extends LevelAnswers {
  readonly effects: readonly (LevelAnswers['effects'][number] & { readonly name: string })[]
}

/** As the handler declares them. */
export function declaredAnswers({ sideEffects, whenInterrupted, effects }: ResolvedHandler): NamedAnswers {
  return { sideEffects, whenInterrupted, effects: [...effects.values()].map(declaredEffect) }
}

function declaredEffect({ name, provider, reconcile }: ResolvedEffect): NamedAnswers['effects'][number] {
  return {
    name,
    takesKey: provider.keyed !== undefined,
    windowMs: provider.keyed?.windowMs ?? null,
    reconciles: reconcile !== undefined,
  }
}

/**
 * The level of what was seen: a declared key counts only where every call took one along, an effect that the handler no
 * longer declares has no reconcile, and what happened twice was done at least once. Undefined where nothing was seen.
 */
export function observedLevel(answers: NamedAnswers, seen: readonly ObservedEffect[]): SafetyLevel | undefined {
  if (seen.length === 0) return undefined
  if (seen.some(({ doubledCount }) => doubledCount > 0)) return 'at least once'
  const declared = new Map(answers.effects.map((effect) => [effect.name, effect]))
  const effects = seen.map(({ effect, callCount, keyedCount }) => ({
    windowMs: null,
    reconciles: false,
    ...declared.get(effect),
    takesKey: keyedCount === callCount,
  }))
  return safetyLevel({ sideEffects: 'effects', whenInterrupted: answers.whenInterrupted, effects })
}

/** 'charge: 12 done, 1 terminal, all with a key'; undefined where nothing was seen. */
export function observedText(seen: readonly ObservedEffect[]): string | undefined {
  if (seen.length === 0) return undefined
  return seen
    .map(({ effect, callCount, outcomes, keyedCount, doubledCount }) => {
      const ends = Object.entries(outcomes).map(([state, count]) => `${count} ${state}`)
      const keys = keyedCount === 0 ? 'none' : keyedCount === callCount ? 'all' : `${keyedCount} of ${callCount}`
      const twice = doubledCount === 0 ? [] : [`${doubledCount} happened beside another`]
      return `${effect}: ${[...ends, ...twice, `${keys} with a key`].join(', ')}`
    })
    .join('; ')
}

/** Highest first; how long a provider remembers does not count. */
const order = ['exactly', 'effectively once (provider', 'effectively once (reconcile', 'at most', 'at least']

/** The lower of two; an unknown one does not lower. */
export function lowerLevel(level: SafetyLevel, other: SafetyLevel | undefined): SafetyLevel {
  const rank = (each: SafetyLevel): number => order.findIndex((beginning) => each.startsWith(beginning))
  return other !== undefined && rank(other) > rank(level) ? other : level
}

/** A handler that is reviewed after every abnormal end never runs twice by itself, wherever its key is enforced. */
export function safetyLevel({ sideEffects, whenInterrupted, effects }: LevelAnswers): SafetyLevel {
  if (whenInterrupted === 'review') return 'at most once + review'
  if (sideEffects === 'effects') return levelOfEffects(effects)
  return sideEffects === 'same-transaction' ? 'exactly once (same database)' : 'at least once'
}

/** The lowest of its effects counts. */
function levelOfEffects(effects: LevelAnswers['effects']): SafetyLevel {
  const unkeyed = effects.filter(({ takesKey }) => !takesKey)
  if (unkeyed.some(({ reconciles }) => !reconciles)) return 'at most once + review'
  if (unkeyed.length > 0) return 'effectively once (reconcile)'
  const windowMs = Math.min(...effects.map((effect) => effect.windowMs ?? Infinity))
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
