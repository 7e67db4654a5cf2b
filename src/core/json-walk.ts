/**
 * The one walk that turns a value into JSON text, used for what is stored (json-image.ts) and for what is hashed
 * (canonical-json.ts). It writes the text while it checks, in one pass: what was checked is what comes out, even if a
 * getter or a toJSON would answer differently the second time.
 */
import { kindOf, tagOf } from './describe-value.ts'
import { ChokaQError } from './errors.ts'
import { jsonPath, type PathSegment } from './json-path.ts'

export interface JsonStyle {
  /** Texts and keys as they are to be written, such as in a Unicode normal form. */
  readonly text: (text: string) => string
  /** The members to write, in order. */
  readonly keys: (object: object) => readonly string[]
  /** Whether half a surrogate pair is refused; otherwise it is written as an escape. */
  readonly refusesLoneSurrogates: boolean
  /**
   * The limit of the whole text. The walk itself gives up at eight times as many characters, so that an object that is
   * shared over and over cannot fill the memory, and an ordinary error can still name the true size.
   */
  readonly maxBytes: number
}

const maxDepth = 200
const overshoot = 8
/** In a pattern with the u flag, a surrogate is only matched where it has no partner. */
const loneSurrogate = /\p{Surrogate}/u

/** Objects whose content JSON would lose without a word, by tag, with what to do about it. */
const lossy: Readonly<Record<string, string>> = {
  Map: 'convert it, for example with Object.fromEntries(map)',
  Set: 'convert it, for example with [...set]',
  WeakMap: 'it cannot be listed',
  WeakSet: 'it cannot be listed',
  WeakRef: 'store what it refers to',
  Promise: 'await it first',
  RegExp: 'convert it, for example with its source',
  Error: 'store its name and message',
  ArrayBuffer: 'convert it, for example to base64',
  SharedArrayBuffer: 'convert it, for example to base64',
  DataView: 'convert it, for example to base64',
  BigInt: 'convert it to a text',
  Symbol: 'convert it to a text',
}

/**
 * Compact JSON text of a value. Like JSON.stringify, except that what JSON would lose or change silently is refused with
 * CHOKAQ_NOT_JSON and its path. CHOKAQ_TOO_LARGE where the walk gives up; its `bytes` are what was counted until then.
 * Whether the text it returns fits `style.maxBytes` is for the caller to check.
 */
export function writeJson(value: unknown, what: string, style: JsonStyle): string {
  return new JsonWriter(what, style).write(value)
}

class JsonWriter {
  readonly #what: string
  readonly #style: JsonStyle
  readonly #path: PathSegment[] = []
  readonly #ancestors: object[] = []
  #chars = 0

  constructor(what: string, style: JsonStyle) {
    this.#what = what
    this.#style = style
  }

  write(value: unknown): string {
    try {
      return this.#value(value, '', 0) ?? 'null'
    } catch (error) {
      if (error instanceof ChokaQError) throw error
      // A getter, a toJSON or a proxy threw; the path still stands where it happened.
      throw this.#refusal('reading it threw an error', error)
    }
  }

  /** Undefined where JSON has nothing to write; arrays make null of it, objects drop the member. */
  #value(value: unknown, key: string, depth: number): string | undefined {
    switch (typeof value) {
      case 'undefined':
        return undefined
      case 'string':
        return this.#text(value)
      case 'number':
        return this.#number(value)
      case 'boolean':
        return this.#count(String(value))
      case 'object':
        return value === null ? this.#count('null') : this.#object(value, key, depth)
      case 'bigint':
        throw this.#refusal('a BigInt (convert it to a text)')
      default:
        throw this.#refusal(kindOf(value))
    }
  }

  #object(value: object, key: string, depth: number): string | undefined {
    // What toJSON returns has no place of its own in the text, but it can return a new toJSON for ever: it counts.
    if (depth >= maxDepth) throw this.#refusal(`nesting deeper than ${maxDepth}`)
    if (this.#ancestors.includes(value)) throw this.#refusal('a circular reference')
    const tag = this.#refusedTag(value)
    const image = ownImage(value, key)
    if (image !== value) return this.#value(image, key, depth + 1)

    if (tag === 'Number') return this.#number(Number.prototype.valueOf.call(value))
    if (tag === 'String') return this.#text(String.prototype.valueOf.call(value))
    if (tag === 'Boolean') return this.#count(String(Boolean.prototype.valueOf.call(value)))
    this.#ancestors.push(value)
    const text = Array.isArray(value) ? this.#array(value, depth) : this.#members(value, depth)
    this.#ancestors.pop()
    return text
  }

  /** The tag of an object that is neither plain nor an array; throws where its content would be lost. */
  #refusedTag(value: object): string {
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype === Object.prototype || prototype === Array.prototype || prototype === null) return ''
    const tag = tagOf(value)
    if (tag === 'Date' && Number.isNaN(Number(value))) throw this.#refusal('an invalid Date')
    // With a toJSON it says itself how it is written: a Buffer, an error of a client library.
    if (hasToJson(value)) return tag
    const kind = ArrayBuffer.isView(value) ? 'ArrayBuffer' : tag
    if (Object.hasOwn(lossy, kind)) throw this.#refusal(`${kindOf(value)} (${lossy[kind]})`)
    return tag
  }

  #array(value: readonly unknown[], depth: number): string {
    const parts: string[] = []
    // By index, because holes count as null as in JSON.
    for (let index = 0; index < value.length; index++) {
      this.#path.push(index)
      parts.push(this.#value(value[index], String(index), depth + 1) ?? this.#count('null'))
      this.#path.pop()
    }
    return `[${parts.join(',')}]${this.#countOnly(parts.length + 2)}`
  }

  #members(value: object, depth: number): string {
    const members = value as Readonly<Record<string, unknown>>
    const parts: string[] = []
    for (const key of this.#style.keys(value)) {
      this.#path.push(key)
      const member = members[key]
      // A toJSON of the object's own that returned `this` is how the object is written, not part of it.
      const isOwnToJson = key === 'toJSON' && typeof member === 'function'
      const text = isOwnToJson ? undefined : this.#value(member, key, depth + 1)
      if (text !== undefined) parts.push(`${this.#text(key)}:${text}`)
      this.#path.pop()
    }
    return `{${parts.join(',')}}${this.#countOnly(2 * parts.length + 2)}`
  }

  #number(value: number): string {
    if (!Number.isFinite(value)) throw this.#refusal(String(value))
    return this.#count(String(value)) // -0 becomes 0, as in JSON.stringify
  }

  #text(value: string): string {
    if (this.#style.refusesLoneSurrogates && loneSurrogate.test(value)) {
      throw this.#refusal('half a surrogate pair (a character cut in two)')
    }
    return this.#count(JSON.stringify(this.#style.text(value)))
  }

  #count(text: string): string {
    this.#countOnly(text.length)
    return text
  }

  #countOnly(chars: number): '' {
    this.#chars += chars
    const { maxBytes } = this.#style
    if (this.#chars > maxBytes * overshoot) {
      throw new ChokaQError('CHOKAQ_TOO_LARGE', { what: this.#what, bytes: this.#chars, maxBytes })
    }
    return ''
  }

  #refusal(problem: string, cause?: unknown): ChokaQError {
    const details = { what: this.#what, path: jsonPath(this.#path), problem }
    return new ChokaQError('CHOKAQ_NOT_JSON', details, cause === undefined ? {} : { cause })
  }
}

function hasToJson(value: object): value is { toJSON(key: string): unknown } {
  return 'toJSON' in value && typeof value.toJSON === 'function'
}

/** What the object says it is in JSON: what its toJSON returns, or itself. */
function ownImage(value: object, key: string): unknown {
  return hasToJson(value) ? value.toJSON(key) : value
}
