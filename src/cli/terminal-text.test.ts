import { describe, expect, it } from 'vitest'
import { jsonLine, oneLine, severalLines } from './terminal-text.ts'

describe('oneLine', () => {
  it.each([
    ['plain ünï 🦊', 'plain ünï 🦊'],
    ['\u001b[31mred\u001b[0m', 'red'],
    ['\u001b]0;title\u0007text', 'text'],
    ['\u001b]8;;https://evil.example\u001b\\link\u001b]8;;\u001b\\', 'link'],
    ['\u009b2Jcleared', 'cleared'],
    ['a\r\n\tb', 'a b'],
    ['a\u0008\u007fb', 'ab'],
    ['\u202eevil\u202c \u2066x\u2069', 'evil x'],
    ['half \ud83d', 'half \ufffd'],
    ['a\u2028b\u0085c', 'abc'],
  ])('makes %j harmless', (text, expected) => {
    expect(oneLine(text)).toBe(expected)
  })
})

describe('severalLines', () => {
  it('keeps line feeds and tabs, and nothing else that moves the cursor', () => {
    expect(severalLines('a\r\nb\rc\td\u001b[2J\u0000')).toBe('a\nb\nc\td')
  })
})

describe('jsonLine', () => {
  it('escapes what is hidden and loses nothing', () => {
    const value = { text: 'a\nb\u009b2J\u202e\u2028\u007f🦊' }
    const line = jsonLine(value)
    // eslint-disable-next-line no-control-regex -- control characters are what must not be there
    expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u202e]/)
    expect(JSON.parse(line)).toEqual(value)
  })

  it('writes null for what JSON has no text for', () => {
    expect(jsonLine(undefined)).toBe('null')
  })
})
