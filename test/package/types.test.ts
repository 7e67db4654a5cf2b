// The declarations that are published, as compilers of three generations read them.
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { node, projectWithPackage, root, type Project } from './packed-package.ts'

/** One of them, the fastest, also checks the declarations themselves and those they import. */
const compilers = [
  { compiler: 'typescript-5.5', skipLibCheck: true },
  { compiler: 'typescript', skipLibCheck: true },
  { compiler: 'typescript-7', skipLibCheck: false },
]
const fixture = join(root, 'test/package/fixtures/first-month.ts')

const strictest = {
  target: 'es2022',
  lib: ['es2022'],
  types: ['node'],
  strict: true,
  noEmit: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
}

/** What it printed and how it ended; a compiler reports errors on its standard output. */
function compile(compiler: string, folder: string, options: object, project: Project): string {
  project.write('tsconfig.json', JSON.stringify({ compilerOptions: options, files: ['first-month.ts'] }))
  try {
    return node(compiler, 'bin/tsc', ['-p', 'tsconfig.json'], folder)
  } catch (error) {
    return String((error as { readonly stdout?: unknown }).stdout)
  }
}

describe('the published types', () => {
  let project: Project

  beforeAll(() => {
    project = projectWithPackage(['zod', 'better-sqlite3', '@types/node', '@types/better-sqlite3'])
    cpSync(fixture, join(project.folder, 'first-month.ts'))
  }, 120_000)
  afterAll(() => {
    project?.remove()
  })

  it.each(compilers)(
    'take what a user writes in the first month, and refuse what is wrong: $compiler',
    ({ compiler, skipLibCheck }) => {
      const nodenext = { ...strictest, skipLibCheck, module: 'nodenext', moduleResolution: 'nodenext' }
      expect(compile(compiler, project.folder, nodenext, project)).toBe('')
    },
    60_000,
  )

  it('are found by bundlers as well', () => {
    const bundler = { ...strictest, module: 'esnext', moduleResolution: 'bundler', skipLibCheck: true }
    expect(compile('typescript', project.folder, bundler, project)).toBe('')
  }, 60_000)
})
