/**
 * A handler: the code for one contract, and its answers. The types refuse what can be told from the declaration; the
 * same rules are checked again at run time, for JavaScript and for casts.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { contractOf, isJob, type Job, type JobContract, type PayloadOut } from './contract.ts'
import type { Completed, Ctx } from './ctx.ts'
import { unknownKeyProblem } from './did-you-mean.ts'
import { durationMs, type Duration } from './duration.ts'
import { effectOf, type Effects, type ResolvedEffect } from './effect.ts'
import { ChokaQError } from './errors.ts'
import { resolveRetryPolicy, type RetryPolicy } from './retry-policy.ts'

/** The closed list of answers to "where is the key enforced?". */
export const sideEffectAnswers = {
  none: 'it has no side effects',
  repeatable: 'running it again changes nothing more; `because` says why',
  'same-transaction': "its writes commit with the job's completion (also the outbox)",
  'unique-constraint': 'a unique constraint of the system that owns the data, with an upsert',
  effects: 'every side effect is a declared effect (defineEffect), with an intent before and an outcome after',
  'read-before-write': 'it reads first and converges to the same state',
  unguarded: "nothing guards it: allowed only with whenInterrupted: 'review'",
} as const
export type SideEffects = keyof typeof sideEffectAnswers

interface Interrupted {
  /**
   * What happens after a crash in mid-run. `resume`: it runs again, within a crash budget of its own. `review`: every
   * abnormal end after the start (crash, throw, timeout, cancel) parks it for a person.
   */
  whenInterrupted: 'resume' | 'review'
}
/** Answers that any contract may give. */
type UnkeyedAnswers = { sideEffects: 'none' } | { sideEffects: 'repeatable'; because: string }
/** Answers that need a key: without one nobody can tell a repeat from a new operation. */
type KeyedAnswers<E extends Effects> =
  | ({ sideEffects: 'same-transaction' | 'unique-constraint' | 'read-before-write' } & Interrupted)
  | ({ sideEffects: 'effects'; effects: E } & Interrupted)
  | { sideEffects: 'unguarded'; whenInterrupted: 'review' }
export type Answers<E extends Effects, K extends boolean> = K extends true
  ? UnkeyedAnswers | KeyedAnswers<E>
  : UnkeyedAnswers

export interface RetryOptions {
  /** Failed attempts (throws, timeouts) until the DLQ. Defaults to 22. */
  attempts?: number
  /** Time from the first start in which a retry may still start. Defaults to 20 hours. */
  for?: Duration
  /** Defaults to base 3 s, factor 2, cap 1 h, jitter 0.1. */
  backoff?: { base?: Duration; factor?: number; cap?: Duration; jitter?: number }
}

interface HandlerOptions {
  retry?: RetryOptions
  /** How long one attempt may run. Defaults to 15 minutes. Then the signal aborts and the attempt has failed. */
  timeout?: Duration
  /** What a duplicate of a running or reviewed job does: 'skip' (default) or 'defer', which waits and asks again. */
  onDuplicate?: 'skip' | 'defer'
  /** What stays of a completed job: `{ completed: 0 }` drops payload, result and errors. Defaults to everything. */
  keep?: { completed: 0 }
}

export type HandlerDefinition<
  S extends StandardSchemaV1,
  R,
  K extends boolean,
  E extends Effects = Record<never, never>,
> = Answers<E, K> &
  HandlerOptions & {
    run(payload: PayloadOut<S>, ctx: Ctx<E>): Promise<R | Completed<R>>
  }

/** What defineHandler returns. */
export interface Handler {
  readonly job: Job
}

/** The handler as the engine reads it. */
export interface ResolvedHandler {
  readonly contract: JobContract
  readonly sideEffects: SideEffects
  readonly because: string | undefined
  /** By the name the handler calls them. */
  readonly effects: ReadonlyMap<string, ResolvedEffect>
  readonly whenInterrupted: 'resume' | 'review'
  readonly retry: RetryPolicy
  /** Undefined: the worker's default. */
  readonly timeoutMs: number | undefined
  readonly onDuplicate: 'skip' | 'defer'
  readonly keepsCompleted: boolean
  readonly run: (payload: unknown, ctx: Ctx) => Promise<unknown>
}

const handlerSymbol = Symbol.for('chokaq.handler')
const fields = [
  'sideEffects',
  'effects',
  'because',
  'whenInterrupted',
  'retry',
  'timeout',
  'onDuplicate',
  'keep',
  'run',
]

/**
 * Gives a contract its code, and answers where the key is enforced and what happens after partial side effects.
 *
 * @example
 * const resize = defineHandler(resizeImage, { sideEffects: 'none', async run(p) { await thumbnail(p.id) } })
 *
 * @throws CHOKAQ_HANDLER_INVALID where an answer is missing or not allowed; its text lists the answers.
 */
export function defineHandler<
  S extends StandardSchemaV1,
  R,
  K extends boolean,
  E extends Effects = Record<never, never>,
>(job: Job<S, R, K>, definition: HandlerDefinition<S, R, K, E>): Handler {
  const resolved = resolveHandler(job, definition as unknown as Readonly<Record<string, unknown>>)
  const handler: Handler = { job: job }
  Object.defineProperty(handler, handlerSymbol, { value: resolved })
  return Object.freeze(handler)
}

/** The resolved handler behind what defineHandler returned. */
export function handlerOf(handler: Handler): ResolvedHandler {
  const resolved = (handler as { readonly [handlerSymbol]?: ResolvedHandler })[handlerSymbol]
  if (resolved === undefined) {
    throw new ChokaQError('CHOKAQ_HANDLER_INVALID', {
      type: String((handler as { readonly job?: { readonly type?: unknown } } | undefined)?.job?.type),
      problem: 'it was not made by defineHandler. Pass what defineHandler returned.',
    })
  }
  return resolved
}

/** Whether a value is what defineHandler returned. */
export function isHandler(value: unknown): value is Handler {
  return typeof value === 'object' && value !== null && handlerSymbol in value
}

function resolveHandler(job: Job, d: Readonly<Record<string, unknown>>): ResolvedHandler {
  const type = isJob(job) ? job.type : String((job as { type?: unknown } | undefined)?.type)
  const refuse = (problem: string): never => {
    throw new ChokaQError('CHOKAQ_HANDLER_INVALID', { type, problem })
  }
  const contract = contractOf(job)
  const unknown = unknownKeyProblem(d, fields, 'defineHandler')
  if (unknown !== undefined) refuse(unknown)
  if (typeof d['run'] !== 'function') refuse('run must be a function.')
  const sideEffects = readSideEffects(d['sideEffects'], refuse)
  const keyed = contract.key !== 'none'
  if (!keyed && sideEffects !== 'none' && sideEffects !== 'repeatable') {
    refuse(
      `sideEffects: '${sideEffects}' needs a keyed contract: without a key nobody can tell a repeat from a new operation. Give the contract a key.`,
    )
  }
  if (sideEffects === 'repeatable' && (typeof d['because'] !== 'string' || d['because'].trim() === '')) {
    refuse("sideEffects: 'repeatable' needs because: one sentence that says why running it again changes nothing more.")
  }
  return Object.freeze({
    contract,
    sideEffects,
    because: d['because'] as string | undefined,
    effects: readEffects(sideEffects, d['effects'], refuse),
    whenInterrupted: readInterrupted(sideEffects, d['whenInterrupted'], refuse),
    retry: resolveRetryPolicy(d['retry'] as RetryOptions | undefined),
    timeoutMs:
      d['timeout'] === undefined
        ? undefined
        : durationMs(d['timeout'] as Duration, `timeout of ${type}`, { minMs: 1, maxMs: 2 ** 31 - 1 }),
    onDuplicate: readOnDuplicate(d['onDuplicate'], refuse),
    keepsCompleted: readKeep(d['keep'], refuse),
    run: d['run'] as ResolvedHandler['run'],
  })
}

function readSideEffects(value: unknown, refuse: (problem: string) => never): SideEffects {
  if (typeof value === 'string' && Object.hasOwn(sideEffectAnswers, value)) return value as SideEffects
  const list = Object.entries(sideEffectAnswers).map(([answer, text]) => `\n  '${answer}': ${text}`)
  return refuse(
    `sideEffects is ${value === undefined ? 'missing' : (JSON.stringify(value) ?? 'no text')}. Where is the key enforced? Answer one of:${list.join('')}`,
  )
}

function readEffects(
  sideEffects: SideEffects,
  value: unknown,
  refuse: (problem: string) => never,
): ReadonlyMap<string, ResolvedEffect> {
  if (sideEffects !== 'effects') {
    return value === undefined ? new Map() : refuse("effects go with sideEffects: 'effects' only.")
  }
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : []
  if (entries.length === 0) refuse("sideEffects: 'effects' needs effects: { name: defineEffect(…) }.")
  const effects = new Map<string, ResolvedEffect>()
  const names = new Set<string>()
  for (const [key, each] of entries) {
    const effect = effectOf(each) ?? refuse(`effects.${key} was not made by defineEffect.`)
    if (names.has(effect.name))
      refuse(`two of its effects are named "${effect.name}"; an effect's name is its identity.`)
    names.add(effect.name)
    effects.set(key, effect)
  }
  return effects
}

function readInterrupted(
  sideEffects: SideEffects,
  value: unknown,
  refuse: (problem: string) => never,
): 'resume' | 'review' {
  if (sideEffects === 'none' || sideEffects === 'repeatable') {
    return value === undefined
      ? 'resume'
      : refuse(`whenInterrupted does not go with sideEffects: '${sideEffects}': it resumes.`)
  }
  if (value !== 'resume' && value !== 'review') {
    return refuse(
      "whenInterrupted is missing. What happens after partial side effects? 'resume' runs it again after a crash; 'review' parks every abnormal end for a person.",
    )
  }
  if (sideEffects === 'unguarded' && value !== 'review') {
    return refuse(
      "sideEffects: 'unguarded' allows only whenInterrupted: 'review': nothing else keeps it from running twice.",
    )
  }
  return value
}

function readOnDuplicate(value: unknown, refuse: (problem: string) => never): 'skip' | 'defer' {
  if (value === undefined || value === 'skip') return 'skip'
  return value === 'defer' ? 'defer' : refuse("onDuplicate must be 'skip' or 'defer'.")
}

function readKeep(value: unknown, refuse: (problem: string) => never): boolean {
  if (value === undefined) return true
  if (typeof value === 'object' && value !== null && (value as { completed?: unknown }).completed === 0) return false
  return refuse('keep must be { completed: 0 } or be left out.')
}
