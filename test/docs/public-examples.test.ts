// Every @example of the public API compiles, and runs where it ends by itself.
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import * as world from './example-world.ts'
import { root } from './markdown-pages.ts'
import { declaredNames, publicExamples } from './public-examples.ts'
import { runSnippet } from './run-snippet.ts'
import { checkSnippets } from './snippet-program.ts'

const examples = publicExamples().map(({ of, text }, index) => {
  const declared = declaredNames(text)
  const names = Object.keys(world).filter((name) => !declared.has(name))
  const imports = `import { ${names.join(', ')} } from '${join(root, 'test/docs/example-world.ts')}'\n`
  const endsByItself = !text.includes('.run()')
  return { of, endsByItself, file: `example-${index}.ts`, text: `${imports}${text}export {}\n` }
})

describe('examples of the public API', () => {
  it('are there for what a user meets first', () => {
    const documented = examples.map(({ of }) => of.split(' ')[1])
    const first = ['defineJob', 'createChokaQ', 'defineHandler', 'createWorker', 'sqlite', 'webhook', 'api']
    expect(first.filter((name) => !documented.includes(name))).toEqual([])
  })

  it('compile', () => {
    expect(checkSnippets(new Map(examples.map(({ file, text }) => [file, text])))).toEqual([])
  }, 120_000)

  it.each(examples.filter(({ endsByItself }) => endsByItself))('run: $of', async ({ file, text }) => {
    await expect(runSnippet(new Map([[file, text]]), file)).resolves.toBeDefined()
  })
})
