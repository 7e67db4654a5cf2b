// `npm run proof:guards`: takes each guard of scripts/guards.ts out of a copy of the tree, runs only the tests that are
// named for it, and says whether they noticed. Ends with 1 where one went unnoticed, or where a text no longer matches.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Guard } from './guard.ts'
import { guards } from './guards.ts'

interface Report {
  readonly testResults: readonly {
    readonly name: string
    readonly assertionResults: readonly { readonly title: string; readonly status: string }[]
  }[]
}

const root = fileURLToPath(new URL('..', import.meta.url))
const left = new Set(['node_modules', '.git', 'dist', 'coverage'])
const copy = mkdtempSync(join(tmpdir(), 'chokaq-guards-'))

try {
  process.exitCode = prove() ? 0 : 1
} finally {
  rmSync(copy, { recursive: true, force: true })
}

function prove(): boolean {
  cpSync(root, copy, { recursive: true, filter: (path) => !left.has(basename(path)) })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  const broken = problemsOf(
    guards.flatMap(({ tests }) => Object.entries(tests)),
    'passed',
  )
  if (broken.length > 0) {
    console.error(`With every guard in place these tests do not pass or do not exist:\n${broken.join('\n')}`)
    return false
  }
  const failures = guards.filter((guard) => !isNoticed(guard))
  console.log(`${guards.length - failures.length} of ${guards.length} guards are held by their tests.`)
  return failures.length === 0
}

function isNoticed(guard: Guard): boolean {
  const { stands, what, file, text, instead, tests } = guard
  const path = join(copy, file)
  const whole = readFileSync(path, 'utf8')
  if (whole.split(text).length !== 2) {
    console.log(`NO MATCH     ${stands}: ${what} (${file})`)
    return false
  }
  writeFileSync(
    path,
    whole.replace(text, () => instead),
  )
  const unnoticed = problemsOf(Object.entries(tests), 'failed')
  writeFileSync(path, whole)
  console.log(`${unnoticed.length === 0 ? 'noticed     ' : 'NOT noticed '} ${stands}: ${what}`)
  for (const each of unnoticed) console.log(`             by ${each}`)
  return unnoticed.length === 0
}

/** Titles that did not end as expected: with `passed` all that match must, with `failed` at least one. */
function problemsOf(tests: readonly (readonly [string, readonly string[]])[], expected: 'passed' | 'failed'): string[] {
  const titles = [...new Set(tests.flatMap(([, names]) => names))]
  const files = [...new Set(tests.map(([file]) => file))]
  const results = run(files, titles).testResults.flatMap(({ name, assertionResults }) =>
    assertionResults.map((test) => ({ file: name, ...test })),
  )
  return tests.flatMap(([file, names]) =>
    names
      .filter((title) => {
        const own = results.filter((test) => test.file.endsWith(file) && test.title.includes(title))
        const ran = own.filter(({ status }) => status === 'passed' || status === 'failed')
        return expected === 'failed'
          ? !ran.some(({ status }) => status === 'failed')
          : ran.length === 0 || ran.some(({ status }) => status === 'failed')
      })
      .map((title) => `${file}: ${title}`),
  )
}

function run(files: readonly string[], titles: readonly string[]): Report {
  const output = join(copy, 'report.json')
  const pattern = titles.map((title) => title.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|')
  const args = ['run', ...files, '-t', pattern, '--reporter=json', `--outputFile=${output}`]
  const { stderr } = spawnSync(process.execPath, ['node_modules/vitest/vitest.mjs', ...args], {
    cwd: copy,
    encoding: 'utf8',
  })
  try {
    return JSON.parse(readFileSync(output, 'utf8')) as Report
  } catch (error) {
    throw new Error(`vitest gave no report:\n${stderr}`, { cause: error })
  } finally {
    rmSync(output, { force: true })
  }
}
