// docs/decisions/edge-cases.md: every case has tests that exist where the page says, and a guard without which one fails;
// or the reason why it has none.
import { describe, expect, it } from 'vitest'
import { guards } from '../../scripts/guards.ts'
import { codeWords, readPage } from './markdown-pages.ts'
import { titlesByFile } from './test-titles.ts'

interface Case {
  readonly name: string
  readonly held: readonly { readonly file: string; readonly title: string }[]
  readonly remark: string
}

const cases = readPage('docs/decisions/edge-cases.md')
  .split(/^## /m)
  .slice(1)
  .map((section): Case => {
    const [heading = '', ...lines] = section.split('\n')
    const held = lines
      .filter((line) => line.startsWith('- '))
      .map((line) => {
        const [file = '', title = ''] = codeWords(line)
        return { file, title }
      })
    const remark = lines.filter((line) => !line.startsWith('- ')).join(' ')
    return { name: heading.split(' ')[0] ?? '', held, remark: remark.trim() }
  })

describe('docs/decisions/edge-cases.md', () => {
  it('has every case from E1 to E55 once, in order', () => {
    expect(cases.map(({ name }) => name)).toEqual(Array.from({ length: 55 }, (_, index) => `E${index + 1}`))
  })

  it('names tests that exist, in their files', () => {
    const known = titlesByFile()
    const missing = cases.flatMap(({ held }) => held).filter(({ file, title }) => known.get(file)?.has(title) !== true)
    expect(missing).toEqual([])
  })

  it('says why, where no test holds a case', () => {
    expect(cases.filter(({ held, remark }) => held.length === 0 && remark.length < 20)).toEqual([])
  })

  it('has a guard for each case that a test holds, and one of its tests fails without it', () => {
    const unguarded = cases.filter(({ name, held }) => {
      const own = guards.filter(({ stands }) => stands.split(' ').includes(name))
      const beginnings = own.flatMap(({ tests }) => Object.values(tests).flat())
      return held.length > 0 && !held.some(({ title }) => beginnings.some((beginning) => title.startsWith(beginning)))
    })
    expect(unguarded.map(({ name }) => name)).toEqual([])
  })
})
