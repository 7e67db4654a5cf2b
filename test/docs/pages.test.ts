// What holds for all pages: links lead somewhere, and the generated page is what its generator writes.
import { existsSync, readdirSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, it } from 'vitest'
import { lifecyclePage } from '../../scripts/generate-lifecycle-doc.ts'
import { anchorsOf, codeBlocks, localLinks, pagePaths, readPage, root } from './markdown-pages.ts'

function brokenLinks(page: string): readonly string[] {
  return localLinks(readPage(page)).filter((target) => {
    const [path = '', anchor] = target.split('#')
    const file = path === '' ? page : normalize(join(dirname(page), path))
    if (!existsSync(join(root, file))) return true
    return anchor !== undefined && !anchorsOf(readPage(file)).has(anchor)
  })
}

describe('pages', () => {
  it('have no broken links among themselves', () => {
    expect(pagePaths().flatMap((page) => brokenLinks(page).map((target) => `${page}: ${target}`))).toEqual([])
  })

  it('say in which language each block of code is', () => {
    const bare = pagePaths().flatMap((page) => codeBlocks(page).filter(({ language }) => language === ''))
    expect(bare).toEqual([])
  })

  it('of decisions are all listed, and at most a page long', () => {
    const pages = readdirSync(join(root, 'docs/decisions')).filter((name) => /^\d{4}-/.test(name))
    expect(localLinks(readPage('docs/decisions/README.md'))).toEqual([...pages, 'edge-cases.md', 'crash-matrix.md'])
    expect(pages.filter((page) => readPage(`docs/decisions/${page}`).split('\n').length > 60)).toEqual([])
  })

  it('docs/lifecycle.md is generated from the transition table', async () => {
    expect(readPage('docs/lifecycle.md')).toBe(await lifecyclePage())
  })
})
