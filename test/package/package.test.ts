// The package as it is published: what is in it, that every entry loads by import and by require and does nothing on
// loading, and what a producer pays for.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sourceEntries } from '../../package-entries.ts'
import { projectWithPackage, root, type Project } from './packed-package.ts'

interface Probe {
  readonly exported: Readonly<Record<string, readonly string[]>>
  readonly changed: boolean
  readonly alive: readonly string[]
}

const specifiers = sourceEntries().map(({ specifier }) => specifier)

describe('the published package', () => {
  let project: Project

  beforeAll(() => {
    project = projectWithPackage(['better-sqlite3', '@opentelemetry/api'])
  }, 120_000)
  afterAll(() => {
    project?.remove()
  })

  function run(...args: readonly string[]): string {
    return execFileSync(process.execPath, args, {
      cwd: project.folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  }

  function probe(how: 'import' | 'require'): Probe {
    return JSON.parse(run(join(root, 'test/package/fixtures/probe.mjs'), how, ...specifiers)) as Probe
  }

  it('holds the build, the licence, the readme and the changelog, and no source or test', () => {
    const outside = project.packed.filter((path) => !path.startsWith('dist/'))
    expect(outside.toSorted()).toEqual(['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json'])
    expect(project.packed.filter((path) => /\.test\.|fixtures|\.db$/.test(path))).toEqual([])
  })

  it('loads every entry by import and by require, with the same exports', () => {
    const imported = probe('import')
    expect(Object.values(imported.exported).map((names) => names.length > 0)).toEqual(specifiers.map(() => true))
    expect(probe('require').exported).toEqual(imported.exported)
  })

  it('changes nothing of the process when it is loaded', () => {
    const { changed, alive } = probe('import')
    expect({ changed, alive }).toEqual({ changed: false, alive: [] })
  })

  it('works from a CommonJS file', () => {
    const file = project.write(
      'app.cjs',
      `const { createChokaQ, defineJob } = require('chokaq')
       const { sqlite } = require('chokaq/sqlite')
       const { createWorker, defineHandler } = require('chokaq/worker')
       const payload = { '~standard': { version: 1, vendor: 'app', validate: (value) => ({ value }) } }
       const greet = defineJob({ type: 'greet.v1', payload, key: (p) => p.name, duplicateWindow: '1d' })
       const handler = defineHandler(greet, { sideEffects: 'none', run: async (p) => 'hello ' + p.name })
       async function main() {
         const chokaq = createChokaQ({ storage: sqlite(':memory:') })
         await chokaq.enqueue(greet, { name: 'Ann' })
         const worker = createWorker({ chokaq, handlers: [handler] })
         await worker.tick()
         const { outcome, result } = await chokaq.enqueue(greet, { name: 'Ann' })
         await worker.stop()
         await chokaq.close()
         console.log(outcome, result)
       }
       main()`,
    )
    expect(run(file)).toBe('already-completed hello Ann\n')
  })

  it('brings a command that starts', () => {
    expect(run('node_modules/chokaq/dist/cli/bin.js', '--help')).toContain('chokaq')
  })
})
