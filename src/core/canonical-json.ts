/**
 * Fingerprints: one text for all values that mean the same, whatever the order of their keys, so that the same key with
 * another payload is told from a harmless repetition. The form follows RFC 8785; on top, texts are NFC-normalised.
 */
import { jsonPath, type PathSegment } from './json-path.ts'
import { writeJson } from './json-walk.ts'

/** Changes with every change of the form: texts of two versions cannot be compared. */
const version = 'v1'
const what = 'The value to compare'
const maxBytes = 16 * 1_024 * 1_024

/**
 * The canonical JSON text: keys in UTF-16 code-unit order, texts and keys in Unicode normal form C, -0 as 0, undefined
 * members dropped, toJSON honoured (a Date is its ISO text), undefined in arrays and at the top as null.
 *
 * Throws CHOKAQ_NOT_JSON for the same values as `toJsonText`, such as BigInt, NaN, Map and Set; only half a surrogate
 * pair is allowed here (written as an escape), because a fingerprint may be made of a cut text.
 */
export function canonicalText(value: unknown): string {
  return writeJson(value, what, { text: normalForm, keys: sortedKeys, refusesLoneSurrogates: false, maxBytes })
}

function normalForm(text: string): string {
  return text.normalize('NFC')
}

function sortedKeys(object: object): readonly string[] {
  return Object.keys(object)
    .map((key) => ({ key, sort: normalForm(key) }))
    .sort((a, b) => compareCodeUnits(a.sort, b.sort) || compareCodeUnits(a.key, b.key))
    .map(({ key }) => key)
}

/** A total order. `localeCompare` is none: it differs by machine and calls distinct texts equal. */
function compareCodeUnits(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

/** The fingerprint of a value: a version and a hash of its canonical text. Throws like `canonicalText`. */
export function fingerprintOf(value: unknown, sha256: (text: string) => string): string {
  return `${version}:${sha256(canonicalText(value))}`
}

/** The version in front of a fingerprint; an empty text where there is none. */
export function fingerprintVersion(fingerprint: string): string {
  const end = fingerprint.indexOf(':')
  return end === -1 ? '' : fingerprint.slice(0, end)
}

/** Whether two fingerprints tell of the same value. Missing ones and those of two versions tell nothing: incomparable. */
export function sameFingerprint(
  a: string | undefined | null,
  b: string | undefined | null,
): 'same' | 'different' | 'incomparable' {
  if (a === undefined || a === null || b === undefined || b === null) return 'incomparable'
  const versionOfA = fingerprintVersion(a)
  if (versionOfA === '' || versionOfA !== fingerprintVersion(b)) return 'incomparable'
  return a === b ? 'same' : 'different'
}

/**
 * Where two values differ in their canonical form, such as `$.amount` or `$.items[2].id`: paths only, never values,
 * because they may be personal. In the order of the canonical text, at most `maxCount`. Throws like `canonicalText`.
 */
export function differingPaths(a: unknown, b: unknown, maxCount = 10): readonly string[] {
  const found: string[] = []
  collect(canonicalValue(a), canonicalValue(b), [], found, maxCount)
  return found
}

function canonicalValue(value: unknown): unknown {
  return JSON.parse(canonicalText(value)) as unknown
}

function collect(a: unknown, b: unknown, path: PathSegment[], found: string[], maxCount: number): void {
  if (found.length >= maxCount || a === b) return
  const segments = sharedSegments(a, b)
  if (segments === undefined) {
    found.push(jsonPath(path))
    return
  }
  for (const segment of segments) {
    path.push(segment)
    collect(memberOf(a, segment), memberOf(b, segment), path, found, maxCount)
    path.pop()
    if (found.length >= maxCount) return
  }
}

/** The members of both, where both are arrays or both are objects; else undefined: they differ as a whole. */
function sharedSegments(a: unknown, b: unknown): readonly PathSegment[] | undefined {
  if (Array.isArray(a) && Array.isArray(b)) return [...Array(Math.max(a.length, b.length)).keys()]
  if (!isObject(a) || !isObject(b) || Array.isArray(a) || Array.isArray(b)) return undefined
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].sort(compareCodeUnits)
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** Undefined for a missing member, which JSON data never contains; so missing and null differ. */
function memberOf(container: unknown, segment: PathSegment): unknown {
  return Object.hasOwn(container as object, segment) ? (container as Record<PathSegment, unknown>)[segment] : undefined
}
