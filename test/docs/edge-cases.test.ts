// docs/decisions/edge-cases.md: every case has a test that exists, or the reason why it has none.
import { describe, expect, it } from 'vitest'
import { codeWords, readPage, tableRows } from './markdown-pages.ts'
import { testTitles } from './test-titles.ts'

const rows = tableRows(readPage('docs/decisions/edge-cases.md')).map(([name = '', , held = '', remark = '']) => ({
  name,
  titles: codeWords(held),
  remark,
}))

describe('docs/decisions/edge-cases.md', () => {
  it('has every case from E1 to E55 once, in order', () => {
    expect(rows.map(({ name }) => name)).toEqual(Array.from({ length: 55 }, (_, index) => `E${index + 1}`))
  })

  it('names tests that exist', () => {
    const known = testTitles()
    expect(rows.flatMap(({ titles }) => titles).filter((title) => !known.has(title))).toEqual([])
  })

  it('says why, where no test holds a case', () => {
    expect(rows.filter(({ titles, remark }) => titles.length === 0 && remark.trim().length < 20)).toEqual([])
  })
})
