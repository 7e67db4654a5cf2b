import { describe, expect, it } from 'vitest'
import { jsonTrouble, placeAt, redactedPaths } from './json-text.ts'

describe('jsonTrouble', () => {
  it.each([
    ['{\n  "a" 1\n}', 2, 7],
    ['[1,\n2,,]', 2, 3],
    ['  ', 1, 1],
    ['{"a": 1} x', 1, 10],
  ])('says where %j stops being JSON', (text, line, column) => {
    expect(jsonTrouble(text)).toMatchObject({ line, column })
  })

  it('has none with JSON', () => {
    expect(['null', '"a"', '[{"a":1e3}]'].map(jsonTrouble)).toEqual([undefined, undefined, undefined])
  })
})

describe('placeAt', () => {
  it('counts lines and columns from 1', () => {
    expect([placeAt('ab', 0), placeAt('a\nb', 2)]).toEqual([
      { line: 1, column: 1 },
      { line: 2, column: 1 },
    ])
  })
})

describe('redactedPaths', () => {
  it('names each hidden value', () => {
    expect(redactedPaths('{"card":{"number":"[redacted]"},"mails":["a","[redacted]"]}')).toEqual([
      'card.number',
      'mails[1]',
    ])
  })
})
