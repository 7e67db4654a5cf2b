import { describe, expect, it } from 'vitest'
import { readIdempotencyKey } from './idempotency-key.ts'
import { Refusal } from './problem.ts'

const uuid = '8e03978e-40d5-43dd-bc93-6894a57f9324'

function read(value: string | undefined): string {
  return readIdempotencyKey(new Headers(value === undefined ? {} : { 'idempotency-key': value }))
}

function refusalOf(value: string | undefined): string {
  try {
    return `accepted ${JSON.stringify(read(value))}`
  } catch (error) {
    return error instanceof Refusal ? `${error.problem.status} ${error.problem.code}` : String(error)
  }
}

describe('readIdempotencyKey', () => {
  it.each([
    ['a quoted String', `"${uuid}"`, uuid],
    ['the bare value most clients send', uuid, uuid],
    ['spaces inside quotes', '"order 42"', 'order 42'],
    ['escapes', String.raw`"a\"b\\c"`, String.raw`a"b\c`],
    ['one character', 'k', 'k'],
    ['255 characters', `"${'k'.repeat(255)}"`, 'k'.repeat(255)],
    ['white space around it', '  "k"  ', 'k'],
    ['base64', 'aGVsbG8+/w==', 'aGVsbG8+/w=='],
  ])('takes %s', (_what, value, key) => {
    expect(read(value)).toBe(key)
  })

  it.each([undefined, '', '   '])('refuses a missing key (%j)', (value) => {
    expect(refusalOf(value)).toBe('400 idempotency-key-missing')
  })

  it.each([
    ['an empty String', '""'],
    ['a blank String', '"   "'],
    ['256 characters', 'k'.repeat(256)],
    ['256 quoted characters', `"${'k'.repeat(256)}"`],
    ['an open quote', '"abc'],
    ['a quote inside', 'a"b'],
    ['a wrong escape', String.raw`"a\b"`],
    ['two header lines', '"a", "b"'],
    ['a bare list', 'a, b'],
    ['parameters', '"a";b=1'],
    ['spaces without quotes', 'a b'],
    ['characters outside ASCII', '"\u00e9"'],
    ['the text of a missing value', 'undefined'],
    ['the quoted text of a missing value', '"null"'],
    ['an object that became a text', '"[object Object]"'],
  ])('refuses %s', (_what, value) => {
    expect(refusalOf(value)).toBe('400 idempotency-key-invalid')
  })
})
