// A long history, made by the database itself, and how fast each page's data answers over it.
import Database from 'better-sqlite3'
import { createChokaQ, type ChokaQ, type Storage } from 'chokaq'
import { createDeck } from 'chokaq/deck'
import { partsOf } from '../../src/engine/parts.ts'
import type { JobPageView } from '../../src/deck/wire-jobs.ts'

export interface VolumeSize {
  readonly deadCount: number
  readonly archivedCount: number
}

export interface Timing {
  readonly page: string
  /** The middle one and the slowest of the calls after the first, milliseconds. */
  readonly medianMs: number
  readonly slowestMs: number
  readonly firstMs: number
}

const day = 86_400_000
/** One of so many dead jobs waits for a person, and the newest of them is far from the newest dead job. */
const reviewEvery = 20_000
const failure = `{"name":"TypeError","message":"the card machine is on fire","stack":"TypeError: the card machine\\n    at run (worker.js:1:1)"}`
const shared = `type, queue, priority, run_at, token, generation, attempt, failure_count, crash_count, fetch_crash_count,
  revision, created_at, started_at, first_started_at, finished_at, key_computed, key_hash, key_prefix, key_scope, payload`

interface Dialect {
  readonly prefix: string
  id(space: string): string
  readonly type: string
  readonly queue: string
  readonly falsy: string
  readonly truth: string
  keyHash(space: string): string
  readonly payload: string
  rows(first: number, count: number): string
}

/** The columns of `shared`, of row `i`. Rows are two a millisecond, the newest one now. */
function values(d: Dialect, space: string, count: number, nowMs: number): string {
  const at = `${nowMs} - (${count} - i) / 2`
  return `${d.type}, ${d.queue}, 0, ${at}, i, 1, 1, 0, 0, 0, 1, ${at}, ${at}, ${at}, ${at} + 40, ${d.falsy},
    ${d.keyHash(space)}, 'order-' || i, 'mail', ${d.payload}`
}

/** The statements that fill both tables, a chunk each. */
export function* fillStatements(
  d: Dialect,
  { deadCount, archivedCount }: VolumeSize,
  nowMs: number,
): Generator<string> {
  const chunk = 500_000
  for (let from = 1; from <= archivedCount; from += chunk) {
    const rows = d.rows(from, Math.min(chunk, archivedCount - from + 1))
    yield `INSERT INTO ${d.prefix}jobs_archive (id, outcome, duplicate_of, ${shared}, result)
      SELECT ${d.id('a')}, CASE WHEN i % 50 = 0 THEN 'skipped' ELSE 'completed' END,
        CASE WHEN i % 50 = 0 THEN ${d.id('d')} END, ${values(d, 'a', archivedCount, nowMs)}, '{"ok":true}' ${rows}`
  }
  for (let from = 1; from <= deadCount; from += chunk) {
    const rows = d.rows(from, Math.min(chunk, deadCount - from + 1))
    yield `INSERT INTO ${d.prefix}jobs_dlq (id, in_doubt, reason, failure, ${shared})
      SELECT ${d.id('d')}, CASE WHEN i % ${reviewEvery} = 1 THEN ${d.truth} ELSE ${d.falsy} END,
        CASE WHEN i % ${reviewEvery} = 1 THEN 'InDoubt' WHEN i % 3 = 0 THEN 'Timeout' ELSE 'MaxRetriesExceeded' END,
        '${failure}', ${values(d, 'd', deadCount, nowMs)} ${rows}`
  }
}

export const postgresDialect: Dialect = {
  prefix: 'chokaq.',
  id: (space) => `('${space.repeat(8)}-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid`,
  type: `'mail.' || (i % 20) || '.v1'`,
  queue: `'queue-' || (i % 5)`,
  falsy: 'false',
  truth: 'true',
  keyHash: (space) => `sha256(('${space}' || i)::bytea)`,
  payload: `('{"to":"somebody@example.com","n":' || i || ',"text":"a text of some length, as mails have it"}')::json`,
  rows: (first, count) => `FROM generate_series(${first}::bigint, ${first}::bigint + ${count - 1}) AS s(i)`,
}

export const sqliteDialect: Dialect = {
  prefix: 'chokaq_',
  id: (space) => `printf('${space.repeat(8)}-0000-7000-8000-%012x', i)`,
  type: `'mail.' || (i % 20) || '.v1'`,
  queue: `'queue-' || (i % 5)`,
  falsy: '0',
  truth: '1',
  keyHash: (space) => `printf('%064x', i * 2654435761 % 4294967296 * 1000 + ${space === 'a' ? 1 : 2})`,
  payload: `'{"to":"somebody@example.com","n":' || i || ',"text":"a text of some length, as mails have it"}'`,
  rows: (first, count) =>
    `FROM (WITH RECURSIVE s(i) AS (SELECT ${first} UNION ALL SELECT i + 1 FROM s LIMIT ${count}) SELECT i FROM s)`,
}

export function fillSqlite(path: string, size: VolumeSize): void {
  const db = new Database(path)
  // Nothing here tests the loss of power.
  db.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -200000')
  for (const sql of fillStatements(sqliteDialect, size, Date.now())) db.exec(sql)
  fillMetrics((sql) => void db.exec(sql), 'chokaq_', Date.now(), sqliteSeries)
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
}

const sqliteSeries = (count: number): string =>
  `(WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT ${count}) SELECT i FROM n)`

/** Seven days of ten-minute buckets of everything, as the sweep leaves them. */
export function fillMetrics(
  run: (sql: string) => void,
  prefix: string,
  nowMs: number,
  series: (n: number) => string,
): void {
  const step = 600_000
  const from = Math.floor((nowMs - 7 * day) / step) * step
  for (const [name, label] of [
    ['jobs.completed', ''],
    ['jobs.dlq', 'Timeout'],
    ['jobs.failed', 'failed'],
    ...Array.from({ length: 12 }, (_, n) => ['lag', String(n)]),
    ...Array.from({ length: 12 }, (_, n) => ['duration', String(n)]),
    ['idempotency.claims', 'claimed'],
  ]) {
    run(`INSERT INTO ${prefix}metric_buckets (series, step, at, name, label, value)
      SELECT 0, ${step}, ${from} + i * ${step}, '${name}', '${label}', 100 + i FROM ${series(1000)}`)
  }
}

/** Every page's data, as the page asks for it. */
export async function measure(storage: Storage, rounds: number): Promise<readonly Timing[]> {
  const chokaq = createChokaQ({ storage })
  try {
    const timings: Timing[] = []
    for (const page of await pagesOf(chokaq)) timings.push(await timingOf(chokaq, page, rounds))
    return timings
  } finally {
    await chokaq.close()
  }
}

async function pagesOf(chokaq: ChokaQ): Promise<readonly string[]> {
  await partsOf(chokaq).driver.ready()
  const [dead] = (await chokaq.dlq.list({ limit: 1 })).jobs
  const [review] = (await chokaq.dlq.list({ inReview: true, limit: 1 })).jobs
  const deep = await chokaq.jobs.list('archive', { limit: 200, beforeMs: (dead?.createdAtMs ?? 0) - 3_000 })
  return [
    'overview',
    'overview?range=7d',
    'metrics?range=7d',
    'queues',
    'types',
    'workers',
    'checklist',
    'audit',
    ...['hot', 'archive', 'dlq'].flatMap((pillar) => [
      `jobs?pillar=${pillar}&limit=100`,
      `jobs?pillar=${pillar}&type=mail.7.v1&limit=100`,
      // Nothing has it: a page that ends with a place to go on.
      `jobs?pillar=${pillar}&type=nobody.v1`,
      `jobs?pillar=${pillar}&tag=nobody`,
      `jobs?pillar=${pillar}&key=order-77`,
      `jobs/count?pillar=${pillar}`,
      `jobs/count?pillar=${pillar}&type=mail.7.v1`,
      `jobs/count?pillar=${pillar}&type=nobody.v1`,
    ]),
    `jobs?pillar=archive&cursor=${deep.nextCursor ?? ''}`,
    'jobs?pillar=dlq&review=1',
    'jobs?pillar=dlq&reason=Timeout&limit=100',
    `jobs/${dead?.id ?? ''}`,
    'reviews',
    `reviews/${review?.id ?? ''}`,
  ]
}

/** A Deck of its own for each call, so that nothing is answered from what was just read. */
async function timingOf(chokaq: ChokaQ, page: string, rounds: number): Promise<Timing> {
  const took: number[] = []
  const deck = createDeck({ chokaq })
  for (let round = 0; round <= rounds; round += 1) {
    const own = page.startsWith('overview') ? createDeck({ chokaq }) : deck
    // The thread or the connection is there already, as it is in a Deck that somebody uses.
    await (await ask(own, 'workers')).text()
    const began = performance.now()
    const response = await ask(own, page)
    const text = await response.text()
    took.push(performance.now() - began)
    if (response.status !== 200) throw new TypeError(`${page} answered ${response.status}: ${text.slice(0, 200)}`)
    if (page.includes('nobody') && page.startsWith('jobs?')) checkGoesOn(page, JSON.parse(text) as JobPageView)
    if (own !== deck) await own.close()
  }
  await deck.close()
  const [firstMs = 0, ...rest] = took
  const sorted = rest.toSorted((a, b) => a - b)
  return { page, firstMs, medianMs: sorted[Math.floor(sorted.length / 2)] ?? 0, slowestMs: sorted.at(-1) ?? 0 }
}

function checkGoesOn(page: string, { jobs }: JobPageView): void {
  if (jobs.length > 0) throw new TypeError(`${page} found what nobody has`)
}

function ask(deck: ReturnType<typeof createDeck>, page: string): Promise<Response> {
  const request = new Request(`http://localhost/api/${page}`, { headers: { host: 'localhost' } })
  return deck(request, { remoteAddress: '127.0.0.1' })
}
