// docs/decisions/crash-matrix.md: every cell has tests that exist where the page says, on the storages that it says, and
// each cell is held on both.
import { describe, expect, it } from 'vitest'
import { acts } from '../postgres/cut-acts.ts'
import { codeWords, readPage } from './markdown-pages.ts'
import { titlesByFile } from './test-titles.ts'

interface Held {
  readonly file: string
  readonly title: string
  readonly on: string
}

const cells = readPage('docs/decisions/crash-matrix.md')
  .split(/^## /m)
  .slice(1)
  .map((section) => {
    const [heading = '', ...lines] = section.split('\n')
    const held = lines
      .filter((line) => line.startsWith('- '))
      .map((line): Held => {
        const [file = '', title = ''] = codeWords(line)
        return { file, title, on: /\((both|SQLite|PostgreSQL)\)$/.exec(line)?.[1] ?? '' }
      })
    return { name: heading.split(' ')[0] ?? '', held }
  })
const all = cells.flatMap(({ held }) => held)
const cutFile = 'test/postgres/cuts.test.ts'

function rangeOf(from: number, to: number): readonly string[] {
  return Array.from({ length: to - from + 1 }, (_, index) => `K${from + index}`)
}

describe('docs/decisions/crash-matrix.md', () => {
  it('has every cell once, in order', () => {
    expect(cells.map(({ name }) => name)).toEqual([...rangeOf(1, 14), 'K17', ...rangeOf(19, 24), 'K26'])
  })

  it('names tests that exist, in their files', () => {
    const known = new Map(titlesByFile()).set(cutFile, new Set(acts.map(({ name }) => name)))
    expect(all.filter(({ file, title }) => known.get(file)?.has(title) !== true)).toEqual([])
  })

  it('says of each test where it runs', () => {
    const wrong = all.filter(({ file, title, on }) => {
      if (file.startsWith('test/postgres/')) return on !== 'PostgreSQL'
      if (on === 'SQLite') return !/file|log|page|connection/.test(title)
      return !readPage(file).includes('each(crashStorages(') || on !== 'both'
    })
    expect(wrong).toEqual([])
  })

  it('holds each cell on both storages', () => {
    const halves = cells.filter(({ held }) => {
      const on = new Set(held.map((each) => each.on))
      return !on.has('both') && !(on.has('SQLite') && on.has('PostgreSQL'))
    })
    expect(halves.map(({ name }) => name)).toEqual([])
  })
})
