/**
 * What nobody sees in the Deck. Paths are taken out of every JSON that is shown (payloads, results, inputs of effects,
 * details of the audit log), and the values found there out of every text beside it (messages, stacks, keys): an error
 * likes to quote what it did not like.
 *
 * A path is matched from the root of the JSON. `*` stands for one step, `**` for any number, and an array may be passed
 * through without a step, so that 'cards.number' also finds the numbers of a list of cards: showing too little is the
 * better mistake.
 */
import { ChokaQError } from '../core/errors.ts'

/** Returns what may be shown of a value; must not change it. What it throws hides the whole value. */
export type RedactFunction = (value: unknown, of: { readonly type: string; readonly what: RedactedPart }) => unknown

export type RedactedPart = 'payload' | 'result' | 'input' | 'detail'

export const redacted = '[redacted]'

const maxHiddenValues = 1_000
/** Shorter ones ("1", "ok") would take half of a text with them. */
const minHiddenLength = 3

export interface RedactedJson {
  /** JSON text. */
  readonly text: string
  /** The values that were taken out, as they would stand in a text. */
  readonly hidden: readonly string[]
}

const nothingHidden: readonly string[] = []

export class Redaction {
  readonly paths: readonly string[]
  readonly #steps: readonly (readonly string[])[]
  readonly #call: RedactFunction | undefined

  constructor(what: readonly string[] | RedactFunction) {
    this.#call = typeof what === 'function' ? what : undefined
    this.paths = typeof what === 'function' ? [] : [...what]
    this.#steps = this.paths.map(stepsOf)
  }

  get isEmpty(): boolean {
    return this.#call === undefined && this.#steps.length === 0
  }

  /** What may be shown of a stored JSON text. One that is no JSON is hidden as a whole where anything is. */
  json(text: string, of: { readonly type: string; readonly what: RedactedPart }): RedactedJson {
    if (this.isEmpty) return { text, hidden: nothingHidden }
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      return { text: JSON.stringify(redacted), hidden: nothingHidden }
    }
    const hidden = new Set<string>()
    const shown = this.value(value, of, hidden)
    return { text: JSON.stringify(shown), hidden: [...hidden] }
  }

  value(value: unknown, of: { readonly type: string; readonly what: RedactedPart }, hidden: Set<string>): unknown {
    if (this.#call === undefined) return withoutPaths(value, this.#steps, hidden)
    let shown: unknown
    try {
      shown = this.#call(structuredClone(value), of)
      // Whatever it gave has to pass for JSON.
      shown = JSON.parse(JSON.stringify(shown ?? null))
    } catch {
      shown = redacted
    }
    collectDifference(value, shown, hidden)
    return shown
  }
}

/** A text beside a redacted JSON, without the values that were taken out of it. */
export function hideValues(text: string, hidden: readonly string[]): string {
  let shown = text
  for (const value of hidden) {
    if (shown.includes(value)) shown = shown.replaceAll(value, redacted)
  }
  return shown
}

/** The longest first, so that a value that holds another one goes as a whole. */
export function hiddenValues(...lists: readonly (readonly string[])[]): readonly string[] {
  return [...new Set(lists.flat())].sort((a, b) => b.length - a.length).slice(0, maxHiddenValues)
}

function stepsOf(path: string): readonly string[] {
  const steps = typeof path === 'string' ? path.split('.') : ['']
  if (!steps.includes('')) return steps
  throw new ChokaQError('CHOKAQ_CONFIG_INVALID', {
    problem: `redact of createDeck has ${JSON.stringify(path)}; expected paths such as 'card.number' or '**.email'.`,
  })
}

type Steps = readonly string[]

function withoutPaths(value: unknown, paths: readonly Steps[], hidden: Set<string>): unknown {
  if (paths.length === 0) return value
  if (paths.some((steps) => steps.every((step) => step === '**'))) return hide(value, hidden)
  if (Array.isArray(value)) {
    return value.map((member: unknown, index) =>
      withoutPaths(member, [...new Set([...paths, ...below(paths, String(index))])], hidden),
    )
  }
  if (typeof value !== 'object' || value === null) return value
  // Own members only, defined and not assigned: a member called __proto__ is data like any other.
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, withoutPaths(member, below(paths, key), hidden)]),
  )
}

/** What is left of each path after a step with this name. */
function below(paths: readonly Steps[], key: string): readonly Steps[] {
  return paths.flatMap((steps) => {
    const [first, ...rest] = steps
    if (first === '**') {
      const [next, ...after] = rest
      return next === key || next === '*' ? [steps, after.length === 0 ? ['**'] : after] : [steps]
    }
    if (first !== key && first !== '*') return []
    return [rest.length === 0 ? ['**'] : rest]
  })
}

function hide(value: unknown, hidden: Set<string>): unknown {
  collect(value, hidden)
  return redacted
}

function collect(value: unknown, hidden: Set<string>): void {
  if (hidden.size >= maxHiddenValues) return
  if (typeof value === 'string' || typeof value === 'number') {
    const text = String(value)
    if (text.length < minHiddenLength) return
    hidden.add(text)
    // As it stands inside a JSON text.
    const escaped = JSON.stringify(text).slice(1, -1)
    if (escaped !== text) hidden.add(escaped)
    return
  }
  if (typeof value !== 'object' || value === null) return
  for (const member of Object.values(value)) collect(member, hidden)
}

function collectDifference(value: unknown, shown: unknown, hidden: Set<string>): void {
  if (typeof value !== 'object' || value === null) {
    if (value !== shown) collect(value, hidden)
    return
  }
  if (typeof shown !== 'object' || shown === null) {
    collect(value, hidden)
    return
  }
  for (const [key, member] of Object.entries(value)) {
    if (Object.hasOwn(shown, key)) collectDifference(member, (shown as Record<string, unknown>)[key], hidden)
    else collect(member, hidden)
  }
}

/**
 * An edited JSON with the stored values back where the editor saw `[redacted]` and left it. Undefined where a placeholder
 * stands in another place: nobody can tell what was meant.
 */
export function restoreRedacted(
  edited: unknown,
  shown: unknown,
  stored: unknown,
): { readonly value: unknown } | undefined {
  if (sameJson(edited, shown)) return { value: stored }
  if (edited === redacted) return undefined
  if (Array.isArray(edited)) {
    if (!JSON.stringify(edited).includes(redacted)) return { value: edited }
    if (!Array.isArray(shown) || !Array.isArray(stored) || shown.length !== edited.length) return undefined
    return all(edited.map((member: unknown, n) => restoreRedacted(member, shown[n], stored[n])))
  }
  if (typeof edited !== 'object' || edited === null) return { value: edited }
  const entries = Object.entries(edited).map(
    ([key, member]) => [key, restoreRedacted(member, memberOf(shown, key), memberOf(stored, key))] as const,
  )
  if (entries.some(([, member]) => member === undefined)) return undefined
  return { value: Object.fromEntries(entries.map(([key, member]) => [key, member?.value])) }
}

function all(members: readonly ({ readonly value: unknown } | undefined)[]): { readonly value: unknown } | undefined {
  return members.includes(undefined) ? undefined : { value: members.map((member) => member?.value) }
}

function memberOf(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
  return (value as Record<string, unknown>)[key]
}

function sameJson(a: unknown, b: unknown): boolean {
  return b !== undefined && JSON.stringify(a) === JSON.stringify(b)
}
