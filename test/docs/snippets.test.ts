// Every TypeScript block of README and docs compiles against the package; a block marked `run` runs and prints what the
// page says it prints.
import { describe, expect, it } from 'vitest'
import { allowConsole } from '../fail-on-console.ts'
import { pagePaths } from './markdown-pages.ts'
import { pageSnippets } from './page-snippets.ts'
import { runSnippet } from './run-snippet.ts'
import { checkSnippets } from './snippet-program.ts'

const snippets = pagePaths().flatMap(pageSnippets)
const texts = new Map(snippets.map(({ file, text }) => [file, text]))

describe('snippets in the documents', () => {
  it('are found', () => {
    expect(snippets.length).toBeGreaterThan(10)
    expect(texts.size).toBe(snippets.length)
  })

  it('compile', () => {
    expect(checkSnippets(texts)).toEqual([])
  }, 120_000)

  it.each(snippets.filter(({ flags }) => flags.includes('run')))('run: $page line $line', async ({ file, output }) => {
    const printed = allowConsole('log')
    const folder = file.slice(0, file.indexOf('/') + 1)
    await runSnippet(new Map([...texts].filter(([name]) => name.startsWith(folder))), file)
    if (output !== undefined) expect(`${printed.join('\n')}\n`).toBe(output)
  })
})
