// `npm run proof:starters [-- --rounds 50]`: eight processes that open the same empty database at the same moment, on both
// storages. Ends with 1 where one of them fails, or where the tables are not those of one installation.
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { migrations as postgresMigrations } from '../src/storage/postgres/migrations.ts'
import { betterSqlite3 } from '../src/storage/sqlite/database.ts'
import { migrations as sqliteMigrations } from '../src/storage/sqlite/migrations.ts'
import { createDatabase } from '../test/postgres/database.ts'
import { stopSharedServer } from '../test/postgres/server.ts'

const processCount = 8
const { values } = parseArgs({ options: { rounds: { type: 'string', default: '50' } } })
const roundCount = Number(values.rounds)
const program = fileURLToPath(new URL('../test/postgres/fixtures/starter.ts', import.meta.url))

interface Message {
  readonly kind: 'ready' | 'answer'
  readonly problem?: string
}

async function next(child: ChildProcess): Promise<Message> {
  const done = new AbortController()
  const { signal } = done
  try {
    const ended = once(child, 'exit', { signal }).then(([code]) => {
      throw new Error(`a starter ended with ${String(code ?? 'a signal')}`)
    })
    const [message] = (await Promise.race([once(child, 'message', { signal }), ended])) as [Message]
    return message
  } finally {
    done.abort()
  }
}

/** Sends the location to all of them in one go; the problems they had. */
async function startAll(children: readonly ChildProcess[], location: string): Promise<readonly string[]> {
  const answers = children.map(next)
  for (const child of children) child.send(location)
  return (await Promise.all(answers)).flatMap(({ problem }) => problem ?? [])
}

const installed = (rows: readonly { readonly version: number }[]): string => rows.map(({ version }) => version).join()

async function postgresRound(children: readonly ChildProcess[], folder: string): Promise<readonly string[]> {
  const database = await createDatabase({ isEmpty: true, folder })
  try {
    const problems = await startAll(children, database.url)
    const rows = await database.query<{ readonly version: number }>('SELECT version FROM chokaq.migrations ORDER BY 1')
    const jobs = await database.query<{ readonly n: number }>('SELECT count(*)::int AS n FROM chokaq.jobs_hot')
    return [...problems, ...differences(installed(rows), installed(postgresMigrations), jobs[0]?.n)]
  } finally {
    await database.drop()
  }
}

async function sqliteRound(children: readonly ChildProcess[], folder: string, n: number): Promise<readonly string[]> {
  const file = join(folder, `${n}.db`)
  const problems = await startAll(children, file)
  const db = betterSqlite3.open(file)
  const rows = db.prepare<{ readonly version: number }>('SELECT version FROM chokaq_migrations ORDER BY 1').all()
  const jobs = db.prepare<{ readonly n: number }>('SELECT count(*) AS n FROM chokaq_jobs_hot').get()
  db.close()
  return [...problems, ...differences(installed(rows), installed(sqliteMigrations), jobs?.n)]
}

function differences(found: string, expected: string, jobCount: number | undefined): readonly string[] {
  return [
    ...(found === expected ? [] : [`versions ${found} instead of ${expected}`]),
    ...(jobCount === processCount ? [] : [`${jobCount ?? 'no'} jobs instead of ${processCount}`]),
  ]
}

async function prove(children: readonly ChildProcess[], folder: string): Promise<void> {
  await Promise.all(children.map(next))
  let problemCount = 0
  for (const { name, round } of [
    { name: 'PostgreSQL', round: () => postgresRound(children, folder) },
    { name: 'SQLite', round: (n: number) => sqliteRound(children, folder, n) },
  ]) {
    const startedMs = performance.now()
    const found: string[] = []
    for (let n = 0; n < roundCount; n += 1) found.push(...(await round(n)))
    for (const problem of found) console.error(`${name}: ${problem}`)
    problemCount += found.length
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(1)
    console.log(`${name}: ${roundCount} rounds x ${processCount} processes, ${found.length} problems (${seconds} s)`)
  }
  if (problemCount > 0) process.exitCode = 1
}

const folder = mkdtempSync(join(tmpdir(), 'chokaq-starters-'))
chmodSync(folder, 0o755)
const children = Array.from({ length: processCount }, () =>
  fork(program, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }),
)
try {
  await prove(children, folder)
} finally {
  for (const child of children) child.disconnect()
  await stopSharedServer(folder)
}
