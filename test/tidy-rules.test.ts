// Shows that each rule of test/tidy.test.ts can fail, and on what it does not.
import { describe, expect, it } from 'vitest'
import { bannedCalls } from './tidy/banned-calls.ts'
import { databaseNamesInLogic, sqlOutsideStorage } from './tidy/database-knowledge.ts'
import { importCycles } from './tidy/import-cycles.ts'
import { importDirections } from './tidy/import-directions.ts'
import { oneTitle } from './tidy/markdown.ts'
import { fileNames } from './tidy/names.ts'
import { fileLength, functionLength } from './tidy/sizes.ts'
import { sleepsInTests } from './tidy/sleeps.ts'
import { parse, type SourceFile } from './tidy/source-file.ts'

type Case = readonly [path: string, text: string]

/** One finding for every bad snippet, none for a good one. */
function holds(rule: (file: SourceFile) => readonly string[], bad: readonly Case[], good: readonly Case[]): void {
  for (const [path, text] of bad) expect(rule(parse(path, text)), `${path}: ${text}`).toHaveLength(1)
  for (const [path, text] of good) expect(rule(parse(path, text)), `${path}: ${text}`).toEqual([])
}

describe('import directions', () => {
  it('lets core import core, and the types of the schema standard', () => {
    holds(
      importDirections,
      [
        ['src/core/job.ts', `import { x } from '../engine/batcher.ts'`],
        ['src/core/job.ts', `import { createHash } from 'node:crypto'`],
        ['src/core/job.ts', `import { v7 } from 'uuid'`],
        ['src/core/job.ts', `import { x } from '@standard-schema/spec'`],
        ['src/core/job.ts', `export * from '../storage/sqlite/index.ts'`],
        ['src/core/job.ts', `type X = import('../http/index.ts').X`],
        ['src/core/job.ts', `import { x } from './lease'`],
      ],
      [
        ['src/core/job.ts', `import { x } from './lease.ts'`],
        ['src/core/job.ts', `import type { StandardSchemaV1 } from '@standard-schema/spec'`],
        ['src/core/job.test.ts', `import { it } from 'vitest'`],
      ],
    )
  })

  it('keeps the stages apart and off the storages', () => {
    holds(
      importDirections,
      [
        ['src/engine/fetch/poll.ts', `import { x } from '../settle/archive.ts'`],
        ['src/engine/fetch/poll.ts', `import { x } from '../worker.ts'`],
        ['src/engine/fetch/poll.ts', `import { x } from '../../storage/sqlite/index.ts'`],
        ['src/engine/fetch/poll.ts', `import { x } from 'node:timers'`],
        ['src/engine/batcher.ts', `import { x } from './fetch/poll.ts'`],
        ['src/engine/batcher.ts', `import { x } from './node-runtime.ts'`],
        ['src/engine/worker.ts', `import { x } from '../storage/sqlite/index.ts'`],
        ['src/engine/other/poll.ts', ''],
      ],
      [
        ['src/engine/fetch/poll.ts', `import { x } from './limits.ts'; import { y } from '../../core/job.ts'`],
        ['src/engine/fetch/poll.ts', `import { x } from '../batcher.ts'`],
        ['src/engine/worker.ts', `import { x } from './fetch/poll.ts'; import { y } from './batcher.ts'`],
        ['src/engine/node-runtime.ts', `import { randomBytes } from 'node:crypto'`],
      ],
    )
  })

  it('keeps the storages apart, each with its own driver', () => {
    holds(
      importDirections,
      [
        ['src/storage/sqlite/index.ts', `import { x } from '../postgres/index.ts'`],
        ['src/storage/sqlite/index.ts', `import { x } from '../../engine/batcher.ts'`],
        ['src/storage/sqlite/index.ts', `import { Pool } from 'pg'`],
      ],
      [
        ['src/storage/sqlite/index.ts', `import Database from 'better-sqlite3'`],
        [
          'src/storage/sqlite/storage.ts',
          `import { x } from './statements/fetch.ts'; import { y } from '../migrate.ts'`,
        ],
      ],
    )
  })

  it('keeps the outer parts at their edge', () => {
    holds(
      importDirections,
      [
        ['src/http/index.ts', `import { x } from '../engine/worker.ts'`],
        ['src/http/index.ts', `import { x } from '../engine/settle/archive.ts'`],
        ['src/testing/index.ts', `import { it } from 'vitest'`],
        ['src/testing/index.ts', `import { x } from '../storage/sqlite/index.ts'`],
        ['src/index.ts', `export { x } from './engine/worker.ts'`],
        ['src/worker.ts', `export { x } from './storage/sqlite/index.ts'`],
        ['src/otel/index.ts', `import { x } from '../engine/worker.ts'`],
        ['src/http/index.ts', `import { x } from '../cli/bin.ts'`],
        ['src/http/index.ts', `import { x } from 'chokaq'`],
      ],
      [
        [
          'src/http/index.ts',
          `import { x } from '../engine/enqueue/client.ts'; import { y } from '../engine/batcher.ts'`,
        ],
        ['src/testing/index.ts', `import type { it } from 'vitest'; const load = () => import('vitest')`],
        ['src/cli/bin.ts', `import { x } from '../storage/sqlite/index.ts'; import { Command } from 'commander'`],
        ['src/index.ts', `export { x } from './engine/enqueue/client.ts'; export type { Y } from './core/job.ts'`],
      ],
    )
  })
})

describe('import cycles', () => {
  it('names the files of a cycle, once', () => {
    const files = [
      parse('src/core/a.ts', `import './b.ts'`),
      parse('src/core/b.ts', `import type { C } from './c.ts'`),
      parse('src/core/c.ts', `export * from './b.ts'`),
    ]
    expect(importCycles(files)).toEqual(['import cycle: src/core/b.ts → src/core/c.ts → src/core/b.ts'])
    expect(importCycles(files.slice(0, 2))).toEqual([])
  })
})

describe('banned calls', () => {
  it('keeps core free of clock, chance and the process', () => {
    const bad = [
      'Date.now()',
      'new Date()',
      'Date()',
      'Math.random()',
      'setTimeout(f, 1)',
      'globalThis.setTimeout(f, 1)',
    ]
    const more = ['setInterval(f, 1)', 'setImmediate(f)', 'performance.now()', 'process.pid', 'const x = process']
    const good = [
      'new Date(now)',
      'port.process(job)',
      'const o = { process: 1 }',
      'interface P { setTimeout(): void }',
    ]
    const own = 'function f(process: Step): void { process.run() }'
    holds(
      bannedCalls,
      [...bad, ...more].map((text) => ['src/core/job.ts', text]),
      [...[...good, own].map((text): Case => ['src/core/job.ts', text]), ['src/core/job.test.ts', 'Date.now()']],
    )
  })

  it('keeps the engine deterministic except for the file that meets Node', () => {
    const bad = [
      'Date.now()',
      'new Date()',
      'Math.random()',
      'setTimeout(f, 1)',
      'process.env.HOME',
      'crypto.randomUUID()',
    ]
    holds(
      bannedCalls,
      bad.map((text) => ['src/engine/fetch/poll.ts', text]),
      [
        ['src/engine/node-runtime.ts', 'Date.now(); setTimeout(f, 1); Math.random()'],
        ['src/engine/fetch/poll.ts', 'runtime.setTimeout(f, 1); clock.now()'],
      ],
    )
  })

  it('keeps console and the environment to the command line, and any and bare errors out', () => {
    holds(
      bannedCalls,
      [
        ['src/http/index.ts', `console.log('x')`],
        ['src/http/index.ts', 'process.env'],
        ['src/http/index.ts', 'let x: any'],
        ['src/http/index.ts', 'x as any'],
        ['src/http/index.ts', `throw new Error('x')`],
        ['src/cli/bin.ts', `throw Error('x')`],
      ],
      [
        ['src/cli/bin.ts', `console.log(process.env.HOME)`],
        ['src/core/errors.ts', `throw new Error('x')`],
        ['src/http/index.ts', `throw new ChokaqError('x'); const any = 1`],
      ],
    )
  })
})

describe('database knowledge', () => {
  it('finds SQL outside the storages', () => {
    holds(
      sqlOutsideStorage,
      [
        ['src/engine/fetch/poll.ts', `db.run('SELECT 1')`],
        ['src/http/index.ts', 'db.run(`UPDATE ${table} SET x = 1`)'],
        ['src/cli/bin.ts', `db.run("DELETE FROM job")`],
        ['src/cli/bin.ts', `db.run("INSERT INTO job")`],
      ],
      [
        ['src/storage/sqlite/index.ts', `db.run('SELECT 1')`],
        ['src/cli/bin.ts', `print('Select a job. UPDATE it.')`],
      ],
    )
  })

  it('finds questions about the name of the database', () => {
    holds(
      databaseNamesInLogic,
      [
        ['src/core/config.ts', `if (kind === 'sqlite') f()`],
        ['src/engine/fetch/poll.ts', `switch (kind) { case 'postgres': f() }`],
        ['src/engine/fetch/poll.ts', `url.startsWith('postgres://')`],
        ['src/engine/fetch/poll.ts', `/sqlite/.test(url)`],
      ],
      [
        ['src/core/config.ts', `const hint = 'for example chokaq/sqlite'`],
        ['src/cli/bin.ts', `if (kind === 'sqlite') f()`],
      ],
    )
  })
})

describe('sleeps', () => {
  it('finds a test that waits for the world', () => {
    holds(
      sleepsInTests,
      [
        ['test/a.test.ts', 'await sleep(10)'],
        ['test/a.test.ts', 'await new Promise((resolve) => setTimeout(resolve, 10))'],
        ['src/core/a.test.ts', 'await new Promise<void>((done) => { setTimeout(() => done(), 10) })'],
        ['test/a.test.ts', `import { setTimeout } from 'node:timers/promises'`],
        ['test/a.test.ts', 'const wait = promisify(setTimeout)'],
        ['test/a.test.ts', 'Atomics.wait(cell, 0, 0, 10)'],
      ],
      [
        ['test/a.test.ts', `new Promise((resolve, reject) => setTimeout(() => reject(late), 10_000))`],
        ['test/a.test.ts', `const limit = setTimeout(() => child.kill(), 10_000)`],
        ['test/a.test.ts', `new Promise<void>((resolve) => clock.setTimeout(resolve, 10))`],
        ['src/core/a.ts', 'await sleep(10)'],
      ],
    )
  })
})

describe('sizes and names', () => {
  it('finds long files', () => {
    const long = 'x\n'.repeat(401)
    holds(
      fileLength,
      ['src/core/a.ts', 'src/core/migrations.ts', 'src/storage/postgres/migration.ts'].map((path) => [path, long]),
      [
        ['src/core/a.ts', 'x\n'.repeat(400)],
        ['src/storage/postgres/migrations.ts', long],
      ],
    )
  })

  it('finds long functions, and exempts only the callback of describe', () => {
    const body = (lines: number): string => `{\n${'x\n'.repeat(lines - 2)}}`
    holds(
      functionLength,
      [
        ['src/core/a.ts', `function f() ${body(71)}`],
        ['src/core/a.ts', `const f = () => ${body(71)}`],
        ['src/core/a.ts', `class A { m() ${body(71)} }`],
        ['src/core/a.ts', `describe('x', () => ${body(71)})`],
        ['test/a.test.ts', `it('x', () => ${body(71)})`],
      ],
      [
        ['src/core/a.ts', `function f() ${body(70)}`],
        ['test/a.test.ts', `describe('x', () => ${body(200)})`],
        ['test/a.test.ts', `describe.skipIf(y)('x', () => ${body(200)})`],
      ],
    )
  })

  it('finds names that are not kebab-case or say nothing', () => {
    for (const bad of ['src/core/retryPolicy.ts', 'src/core/Job.ts', 'src/core/job_row.ts', 'test/helpers.ts']) {
      expect(fileNames(bad)).toHaveLength(1)
    }
    expect(fileNames('src/utils/time.ts')).toHaveLength(1)
    expect(fileNames('src/engine/retry-manager.ts')).toHaveLength(1)
    expect(fileNames('src/core/retry-policy.test.ts')).toEqual([])
  })
})

describe('pages', () => {
  it('finds pages without a title or with two', () => {
    expect(oneTitle('a.md', 'text')).toHaveLength(1)
    expect(oneTitle('a.md', '# A\n\n# B\n')).toHaveLength(1)
    expect(oneTitle('a.md', '# A\n\n## B\n\n```sh\n# a comment\n```\n')).toEqual([])
  })
})
