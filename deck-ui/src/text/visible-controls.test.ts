import { describe, expect, it } from 'vitest'
import { piecesOf, plainText } from './visible-controls.ts'

describe('plainText', () => {
  it.each([
    ['a\u202Eb', 'aU+202Eb'],
    ['\u001b[31m', '\u241b[31m'],
    ['a\nb', 'a\u240ab'],
    ['\u200b\ufeff', 'U+200BU+FEFF'],
    ['\ud800', 'U+D800'],
    ['naïve 🎉 日本', 'naïve 🎉 日本'],
    ['', ''],
  ])('makes %j visible', (text, shown) => {
    expect(plainText(text)).toBe(shown)
  })
})

describe('piecesOf', () => {
  it('keeps lines and tabs in a block, and nothing else that would not be seen', () => {
    expect(piecesOf('a\n\tb\u0000', { block: true })).toEqual([
      { text: 'a\n\tb', isSign: false },
      { text: '\u2400', isSign: true },
    ])
  })
})
