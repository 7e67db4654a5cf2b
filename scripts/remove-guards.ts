// `npm run proof:guards`: takes each guard of scripts/guards.ts out of a copy of the tree, runs only the tests that are
// named for it, and says whether they noticed. Ends with 1 where one went unnoticed, or where a text no longer matches.
// With arguments, such as `npm run proof:guards -- E18 H5`, only the guards that stand for them.
import { spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Guard } from './guard.ts'
import { guards as all } from './guards.ts'

interface Report {
  readonly testResults: readonly {
    readonly name: string
    readonly assertionResults: readonly { readonly title: string; readonly status: string }[]
  }[]
}

const wanted = new Set(process.argv.slice(2))
const guards = all.filter(({ stands }) => wanted.size === 0 || stands.split(' ').some((name) => wanted.has(name)))
const root = fileURLToPath(new URL('..', import.meta.url))
const left = new Set(['node_modules', '.git', 'dist', 'coverage'])
/** Each proves in a copy of its own; more would only wait for each other. */
const maxCopyCount = 3
const copies = Array.from({ length: Math.min(maxCopyCount, availableParallelism()) }, () =>
  mkdtempSync(join(tmpdir(), 'chokaq-guards-')),
)

try {
  process.exitCode = (await prove()) ? 0 : 1
} finally {
  for (const copy of copies) rmSync(copy, { recursive: true, force: true })
}

async function prove(): Promise<boolean> {
  for (const copy of copies) {
    cpSync(root, copy, { recursive: true, filter: (path) => !left.has(basename(path)) })
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  }
  const [first = ''] = copies
  const tests = guards.flatMap((guard) => Object.entries(guard.tests))
  const broken = await problemsOf(first, tests, 'passed')
  if (broken.length > 0) {
    console.error(`With every guard in place these tests do not pass or do not exist:\n${broken.join('\n')}`)
    return false
  }
  const line = guards.values()
  let noticedCount = 0
  await Promise.all(
    copies.map(async (copy) => {
      for (const guard of line) if (await isNoticed(copy, guard)) noticedCount += 1
    }),
  )
  console.log(`${noticedCount} of ${guards.length} guards are held by their tests.`)
  return noticedCount === guards.length
}

async function isNoticed(copy: string, guard: Guard): Promise<boolean> {
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
  const unnoticed = await problemsOf(copy, Object.entries(tests), 'failed')
  writeFileSync(path, whole)
  console.log(`${unnoticed.length === 0 ? 'noticed     ' : 'NOT noticed '} ${stands}: ${what}`)
  for (const each of unnoticed) console.log(`             by ${each}`)
  return unnoticed.length === 0
}

/** Titles that did not end as expected: with `passed` all that match must, with `failed` at least one. */
async function problemsOf(
  copy: string,
  tests: readonly (readonly [string, readonly string[]])[],
  expected: 'passed' | 'failed',
): Promise<string[]> {
  const titles = [...new Set(tests.flatMap(([, names]) => names))]
  const files = [...new Set(tests.map(([file]) => file))]
  const { testResults } = await run(copy, files, titles)
  const results = testResults.flatMap(({ name, assertionResults }) =>
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

async function run(copy: string, files: readonly string[], titles: readonly string[]): Promise<Report> {
  const output = join(copy, 'report.json')
  const pattern = titles.map((title) => title.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|')
  const args = ['run', ...files, '-t', pattern, '--reporter=json', `--outputFile=${output}`]
  const vitest = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', ...args], {
    cwd: copy,
    stdio: ['ignore', 'ignore', 'pipe'],
    // The guards stand in the engine and in SQLite; what is true of both databases costs half the time on one.
    env: { ...process.env, CHOKAQ_TEST_WITHOUT_POSTGRES: '1' },
  })
  let complaints = ''
  vitest.stderr.setEncoding('utf8').on('data', (text: string) => (complaints += text))
  await new Promise<void>((resolve, reject) => vitest.on('close', () => resolve()).on('error', reject))
  try {
    return JSON.parse(readFileSync(output, 'utf8')) as Report
  } catch (error) {
    throw new Error(`vitest gave no report:\n${complaints}`, { cause: error })
  } finally {
    rmSync(output, { force: true })
  }
}
