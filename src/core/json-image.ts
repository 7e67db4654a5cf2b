import { ChokaQError } from './errors.ts'
import { writeJson } from './json-walk.ts'

export interface JsonLimits {
  /** The largest size of the text in UTF-8. */
  readonly maxBytes: number
  /** Byte length of a text in UTF-8. */
  byteLength(text: string): number
}

/**
 * The JSON text under which a value is stored. `what` names the value in errors, such as 'The payload of "mail.v1"'.
 *
 * Like JSON.stringify without spaces: undefined members are dropped, undefined in arrays (holes included) and at the top
 * becomes null, -0 becomes 0, toJSON is honoured (a Date becomes its ISO text) and what it returns is walked again, boxed
 * primitives are unwrapped, symbol keys are not looked at. A member called `__proto__` is data like any other, and NUL
 * characters are kept (JSON escapes them).
 *
 * What JSON would lose or change silently is refused with CHOKAQ_NOT_JSON and its path: BigInt, NaN, Infinity, functions,
 * symbols, invalid Dates, Map, Set, promises, errors, patterns and raw bytes, circular references, nesting deeper than
 * 200, halves of surrogate pairs (UTF-8 cannot hold them), and a getter or toJSON that throws.
 * CHOKAQ_TOO_LARGE over `maxBytes`; beyond eight times the limit its `bytes` are what was counted until then.
 *
 * Never changes the value.
 */
export function toJsonText(value: unknown, what: string, limits: JsonLimits): string {
  const { maxBytes } = limits
  const text = writeJson(value, what, { text: asIs, keys: Object.keys, refusesLoneSurrogates: true, maxBytes })
  const bytes = limits.byteLength(text)
  if (bytes > maxBytes) throw new ChokaQError('CHOKAQ_TOO_LARGE', { what, bytes, maxBytes })
  return text
}

function asIs(text: string): string {
  return text
}

/**
 * The value of a stored text. A member called `__proto__` comes back as an own member: JSON.parse never sets a prototype.
 * Copying such an object member by member with `copy[key] = …` would; use a spread or Object.defineProperty. Throws a
 * SyntaxError for a text that is no JSON.
 */
export function parseJson(text: string): unknown {
  return JSON.parse(text) as unknown
}
