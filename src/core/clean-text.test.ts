import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cleanText } from './clean-text.ts'

test.each([
  ['', ''],
  ['a\n\tb', 'a\n\tb'],
  ['a\0b', 'a\ufffdb'],
  ['a\ud83db', 'a\ufffdb'],
  ['\ude00', '\ufffd'],
  ['😀', '😀'],
  ['a\r\nb\u001b[31m\u007f\u0085\u009b', 'a\nb[31m'],
  ['x'.repeat(100), 'x'.repeat(100)],
])('%j becomes %j', (text, cleaned) => {
  expect(cleanText(text, 100)).toBe(cleaned)
})

test('a long text is cut and says by how much', () => {
  const cut = cleanText('x'.repeat(1_000), 100)
  const kept = cut.indexOf(' … ')
  expect(cut).toBe(`${'x'.repeat(kept)} … (${1_000 - kept} more characters)`)
  expect(cut.length).toBeGreaterThan(90)
  expect(cut.length).toBeLessThanOrEqual(100)
})

test('a limit too small for the note cuts without one', () => {
  expect(cleanText('x'.repeat(100), 10)).toBe('x'.repeat(10))
  expect(cleanText('😀'.repeat(100), 5)).toBe('😀😀')
  expect(cleanText('xyz', 0)).toBe('')
})

test('never cuts a character in two', () => {
  for (let offset = 0; offset < 4; offset++) {
    const cut = cleanText('x'.repeat(offset) + '😀'.repeat(1_000), 100)
    expect(cut).not.toContain('\ufffd')
    expect(cut).toMatch(/😀 … \(\d+ more characters\)$/)
  }
})

test('is always short enough, storable and stable', () => {
  const anyText = fc.string({ unit: 'binary', maxLength: 300 })
  fc.assert(
    fc.property(anyText, fc.nat({ max: 200 }), (text, maxChars) => {
      const cleaned = cleanText(text, maxChars)
      expect(cleaned.length).toBeLessThanOrEqual(maxChars)
      expect(cleaned).not.toMatch(/[^\P{Cc}\n\t]|\p{Surrogate}/u)
      expect(cleanText(cleaned, maxChars)).toBe(cleaned)
    }),
    { numRuns: 500 },
  )
})
