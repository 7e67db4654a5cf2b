/** Business keys: which ones identify nothing, how they are hashed and shown, and the keys providers get from them. */
import { kindOf, quoted } from './describe-value.ts'

/** What people see as nothing: white space of all scripts, control characters, and characters that are never drawn. */
const blanks = /^[\p{White_Space}\p{Cc}\p{Default_Ignorable_Code_Point}\u2800]*$/u
/** What a template leaves when a value was missing: `${undefined}`, `${{}}`, `${promise}`, `${new Date(NaN)}`. */
const missingWords = /\[object \w+\]|(?<![\p{L}\p{N}])(?:undefined|null|NaN|Invalid Date)(?![\p{L}\p{N}])/gu
const separators = /^[\p{P}\p{White_Space}\p{Cc}\p{Default_Ignorable_Code_Point}\u2800|+=~^`<>$]*$/u
const loneSurrogate = /\p{Surrogate}/u

/**
 * Why a value cannot be a business key, as a short description of what it is ('a number', 'a blank text', 'the text
 * "undefined"'); undefined for a good key. A key that identifies nothing would leave a side effect unprotected, or hold
 * unrelated jobs for duplicates of each other, so all of these fail closed:
 * other types than texts, empty and blank texts, the texts of missing values (`undefined`, `null`, `NaN`,
 * `[object Object]`, `Invalid Date`), texts made of nothing but those and separators (an array of nulls, joined), and
 * texts with half a surrogate pair, which UTF-8 cannot tell apart.
 */
export function keyProblem(key: unknown): string | undefined {
  if (typeof key !== 'string') return kindOf(key)
  if (key === '') return 'an empty text'
  if (blanks.test(key)) return 'a blank text'
  if (loneSurrogate.test(key)) return 'a text with half a surrogate pair'
  if (!separators.test(key.replace(missingWords, ''))) return undefined
  if (separators.test(key)) return `the text ${quoted(key)}, made only of separators`
  return `the text ${quoted(key)}`
}

export interface KeyParts {
  readonly tenant?: string
  readonly scope: string
  readonly key: string
}

/**
 * The hash under which a key is claimed: 64 hexadecimal digits over tenant, scope and key in Unicode normal form C.
 * Every part carries its length, so that no two sets of parts share a text; no tenant differs from an empty one.
 * `parts.key` must have passed `keyProblem`.
 */
export function keyHash(parts: KeyParts, sha256: (text: string) => string): string {
  return sha256(
    `chokaq-key-v1|${lengthPrefixed(parts.tenant)}|${lengthPrefixed(parts.scope)}|${lengthPrefixed(parts.key)}`,
  )
}

function lengthPrefixed(part: string | undefined): string {
  if (part === undefined) return '-'
  const text = part.normalize('NFC')
  return `${text.length}:${text}`
}

const maxPrefixChars = 64
/** Control characters, line separators and the marks that reverse the direction of writing: none may reach a terminal. */
const undisplayable = /[\p{Cc}\p{Surrogate}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu

/**
 * The readable beginning of a key for operators: at most 64 UTF-16 code units, never half a character, in Unicode normal
 * form C, with control characters replaced by U+FFFD. Two keys may share it; only the hash identifies.
 */
export function keyPrefix(key: string): string {
  // Normalising can only join what stands close together, so a generous first cut keeps a huge key cheap.
  const start = key
    .slice(0, maxPrefixChars * 8)
    .normalize('NFC')
    .slice(0, maxPrefixChars + 1)
  const isCutInsidePair = /[\ud800-\udbff][\udc00-\udfff]$/.test(start) && start.length > maxPrefixChars
  return start.slice(0, isCutInsidePair ? maxPrefixChars - 1 : maxPrefixChars).replace(undisplayable, '\ufffd')
}

/** The default scope of a type's keys: the type without its trailing `.vN`, so that all versions share their claims. */
export function keyScopeOf(type: string): string {
  return type.replace(/(?<=.)\.v\d+$/s, '')
}

export interface EffectKeyParts {
  /** The key hash of the job; a job without a business key is identified by its id instead. */
  readonly keyHash?: string
  readonly jobId: string
  readonly generation: number
  /** Name of the effect, with its item where it has one. */
  readonly name: string
}

/**
 * The idempotency key for a provider call: the same on every attempt of the same operation (and on every job of the same
 * business key and generation), different for every other. A UUID of version 8 in lower case: 36 characters of
 * [0-9a-f-], which every provider's rules allow.
 */
export function effectKey(parts: EffectKeyParts, sha256: (text: string) => string): string {
  const owner = parts.keyHash === undefined ? `job|${parts.jobId}` : `key|${parts.keyHash}`
  const hash = sha256(`chokaq-effect-v1|${owner}|${parts.generation}|${lengthPrefixed(parts.name)}`)
  const variant = ((Number.parseInt(hash.slice(16, 17), 16) & 0b0011) | 0b1000).toString(16)
  const groups = [
    hash.slice(0, 8),
    hash.slice(8, 12),
    `8${hash.slice(13, 16)}`,
    `${variant}${hash.slice(17, 20)}`,
    hash.slice(20, 32),
  ]
  return groups.join('-')
}
