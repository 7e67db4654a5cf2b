// docs/guarantees.md names the tests that hold each promise; all of them exist.
import { describe, expect, it } from 'vitest'
import { codeWords, readPage, sectionOf } from './markdown-pages.ts'
import { testTitles } from './test-titles.ts'

const promises = sectionOf(readPage('docs/guarantees.md'), 'What is promised')
  .split(/^(?=\*\*)/m)
  .filter((part) => part.trim() !== '')
  .map((text) => {
    const [sentence = '', tests = ''] = text.split('\nHeld by:\n')
    return { sentence: sentence.slice(0, 60), titles: codeWords(tests) }
  })

describe('docs/guarantees.md', () => {
  it('names at least one test for each promise', () => {
    expect(promises.length).toBeGreaterThan(5)
    expect(promises.filter(({ titles }) => titles.length === 0)).toEqual([])
  })

  it('names tests that exist', () => {
    const known = testTitles()
    expect(promises.flatMap(({ titles }) => titles).filter((title) => !known.has(title))).toEqual([])
  })
})
