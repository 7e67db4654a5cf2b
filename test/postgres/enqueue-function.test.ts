// The SQL function for triggers and other languages: what it stores, what it refuses, and whom it wakes.
import { createChokaQ, defineJob } from 'chokaq'
import { postgres } from 'chokaq/postgres'
import { createWorker, defineHandler } from 'chokaq/worker'
import pg from 'pg'
import { z } from 'zod'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { soon } from '../soon.ts'
import { codeBlocks } from '../docs/markdown-pages.ts'
import { createDatabase, databaseUrl, withClient } from './database.ts'
import { runtime } from './scene.ts'

const database = await createDatabase({ isEmpty: true })
afterAll(() => database.drop())

const order = z.object({ order: z.string() })
const ship = defineJob({
  type: 'parcel.ship.v1',
  payload: order,
  queue: 'parcels',
  key: (p) => p.order,
  duplicateWindow: '1d',
  allowRaw: true,
})
const charge = defineJob({ type: 'payment.charge.v1', payload: order, key: (p) => p.order, duplicateWindow: '1d' })
const resize = defineJob({ type: 'image.resize.v1', payload: order })

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`
const schemas = ['chokaq', `it's "odd"; $$ -- $1 Grüße`] as const

describe.each(schemas)('in the schema %s', (schema) => {
  const call = `SELECT ${quoted(schema)}.enqueue`
  const chokaq = createChokaQ({ storage: postgres(database.url, { schema }) })
  const ran: string[] = []
  const handlers = [
    defineHandler(ship, {
      sideEffects: 'unique-constraint',
      whenInterrupted: 'resume',
      run: async (p) => void ran.push(p.order),
    }),
    defineHandler(charge, { sideEffects: 'unguarded', whenInterrupted: 'review', run: async () => undefined }),
    defineHandler(resize, { sideEffects: 'none', run: async () => undefined }),
  ]
  const work = async (): Promise<void> => {
    const worker = createWorker({ chokaq, handlers })
    while ((await worker.tick()) > 0);
    await worker.stop()
  }
  beforeAll(work)
  afterAll(() => chokaq.close())

  async function enqueue(args: string, values: readonly unknown[] = []): Promise<string> {
    const [row] = await database.query<{ readonly enqueue: string }>(`${call}(${args})`, values)
    return row?.enqueue ?? 'nothing'
  }
  const refusal = (args: string, values?: readonly unknown[]): Promise<string> =>
    enqueue(args, values).then(
      (id) => `stored ${id}`,
      (error: unknown) => (error as Error).message,
    )
  const hotCount = async (): Promise<number> => (await chokaq.jobs.list('hot')).jobs.length

  it('stores a job that a worker claims, runs and recognises again', async () => {
    const first = await enqueue(`'parcel.ship.v1', '{"order": "o1"}'`)
    expect(first).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    const stored = await chokaq.jobs.get(first)
    expect(stored).toMatchObject({ state: 'pending', queue: 'parcels', payload: '{"order": "o1"}', keyHash: null })
    expect(Math.abs(Number.parseInt(first.replaceAll('-', '').slice(0, 12), 16) - Date.now())).toBeLessThan(60_000)
    const second = await enqueue(`type => 'parcel.ship.v1', payload => json_build_object('order', 'o1')`)
    await work()
    expect(ran).toEqual(['o1'])
    const outcomes = await Promise.all([first, second].map(async (id) => (await chokaq.jobs.get(id))?.state))
    expect(outcomes).toEqual(['completed', 'skipped'])
    const counted = (await chokaq.insight.stats()).filter(
      ({ name, type }) => name === 'jobs.enqueued' && type === ship.type,
    )
    expect(counted.map(({ value }) => value)).toEqual([2])
  })

  it('keeps every argument', async () => {
    const id = runtime.newId()
    const args = `type => 'image.resize.v1', payload => '{"order":"x"}', queue => '🦊 "q"', priority => -7,
      delay => '1 hour', tags => ARRAY['a', 'b''c'], tenant => 'acme', id => $1`
    expect(await enqueue(args, [id])).toBe(id)
    const expected = { id, queue: '🦊 "q"', priority: -7, state: 'scheduled', tags: ['a', "b'c"], tenant: 'acme' }
    const job = await chokaq.jobs.get(id)
    expect(job).toMatchObject(expected)
    expect(Math.abs((job?.runAtMs ?? 0) - Date.now() - 3_600_000)).toBeLessThan(60_000)
    const late = await enqueue(`'image.resize.v1', '{}', run_at => '2001-01-01Z'`)
    const past = await chokaq.jobs.get(late)
    expect(past?.state).toBe('pending')
    expect(past?.runAtMs).toBe(past?.createdAtMs)
    const soon = new Date(Date.now() + 60_000)
    const timed = await enqueue(`'image.resize.v1', '{}', run_at => $1`, [soon])
    expect((await chokaq.jobs.get(timed))?.runAtMs).toBe(soon.getTime())
  })

  it('may be repeated with an id, wherever the job is by then', async () => {
    const id = runtime.newId()
    const args = `'parcel.ship.v1', '{"order":"again"}', id => $1`
    expect([await enqueue(args, [id]), await enqueue(args, [id])]).toEqual([id, id])
    await work()
    expect(ran.filter((each) => each === 'again')).toHaveLength(1)
    expect(await enqueue(args, [id])).toBe(id)
    expect((await chokaq.jobs.get(id))?.pillar).toBe('archive')
    const reused = `CHOKAQ_ID_REUSED: The id ${id} belongs to another job.`
    expect(await refusal(`'image.resize.v1', '{"order":"again"}', id => $1`, [id])).toBe(reused)
    expect(await refusal(`'parcel.ship.v1', '{"order":"other"}', id => $1`, [id])).toBe(reused)
    expect((await chokaq.jobs.list('hot')).jobs.filter((job) => job.id === id)).toEqual([])
  })

  it.each([
    [`'image.rezise.v1', '{}'`, /^CHOKAQ_UNKNOWN_TYPE: No worker has registered the type "image.rezise.v1"/],
    [`NULL, '{}'`, /^CHOKAQ_UNKNOWN_TYPE: .* NULL/],
    [`'payment.charge.v1', '{"order":"o"}'`, /^CHOKAQ_RAW_REFUSED: The type "payment.charge.v1" is keyed/],
    [`'image.resize.v1', NULL`, /^CHOKAQ_OPTION_INVALID: payload is NULL/],
    [`'image.resize.v1', '{not json'`, /invalid input syntax for type json/],
    [`'image.resize.v1', '{}', queue => ''`, /^CHOKAQ_OPTION_INVALID: queue/],
    [`'image.resize.v1', '{}', queue => repeat('q', 129)`, /^CHOKAQ_OPTION_INVALID: queue/],
    [`'image.resize.v1', '{}', queue => E'a\\tb'`, /^CHOKAQ_OPTION_INVALID: queue/],
    [`'image.resize.v1', '{}', tenant => ''`, /^CHOKAQ_OPTION_INVALID: tenant/],
    [`'image.resize.v1', '{}', priority => 1001`, /^CHOKAQ_OPTION_INVALID: priority is 1001/],
    [`'image.resize.v1', '{}', priority => NULL`, /^CHOKAQ_OPTION_INVALID: priority is NULL/],
    [`'image.resize.v1', '{}', delay => '-1 s'`, /^CHOKAQ_OPTION_INVALID: delay is/],
    [`'image.resize.v1', '{}', delay => '31 days'`, /^CHOKAQ_OPTION_INVALID: delay or run_at/],
    [`'image.resize.v1', '{}', run_at => now() + interval '31 days'`, /^CHOKAQ_OPTION_INVALID: delay or run_at/],
    [`'image.resize.v1', '{}', run_at => 'infinity'`, /^CHOKAQ_OPTION_INVALID: run_at is infinite/],
    [`'image.resize.v1', '{}', run_at => now(), delay => '1 s'`, /^CHOKAQ_OPTION_INVALID: run_at; expected either/],
    [`'image.resize.v1', '{}', tags => array_fill('t'::text, ARRAY[11])`, /^CHOKAQ_OPTION_INVALID: tags/],
    [`'image.resize.v1', '{}', tags => ARRAY['']`, /^CHOKAQ_OPTION_INVALID: tags/],
    [`'image.resize.v1', '{}', tags => ARRAY['a', NULL]`, /^CHOKAQ_OPTION_INVALID: tags/],
    [`'image.resize.v1', '{}', tags => ARRAY[repeat('t', 101)]`, /^CHOKAQ_OPTION_INVALID: tags/],
    [
      `'image.resize.v1', to_json(repeat('x', 999999))`,
      /^CHOKAQ_TOO_LARGE: .* has 1000001 bytes; the limit is 1000000/,
    ],
  ])('refuses %s, and stores nothing', async (args, message) => {
    const before = await hotCount()
    expect(await refusal(args)).toMatch(message)
    expect(await hotCount()).toBe(before)
  })

  it('takes what stands at each limit', async () => {
    const args = `'image.resize.v1', to_json(repeat('x', 999998)), queue => repeat('q', 128), priority => 1000,
      delay => '30 days', tags => array_fill(repeat('t', 100), ARRAY[10])`
    expect(await refusal(args)).toMatch(/^stored /)
  })

  it('shares the fate of the transaction around it', async () => {
    await withClient(database.url, async (client) => {
      const id = runtime.newId()
      await client.query('BEGIN')
      await client.query(`${call}('image.resize.v1', '{}', id => $1)`, [id])
      await client.query('ROLLBACK')
      expect(await chokaq.jobs.get(id)).toBeUndefined()
      await client.query('BEGIN')
      await client.query(`${call}('image.resize.v1', '{}', id => $1)`, [id])
      expect(await chokaq.jobs.get(id)).toBeUndefined()
      await client.query('COMMIT')
      expect(await chokaq.jobs.get(id)).toMatchObject({ state: 'pending' })
    })
  })

  it('works in a trigger, for a role that may only read and write rows', async () => {
    const [role, table] = [`writer_${schemas.indexOf(schema)}`, `orders_${schemas.indexOf(schema)}`]
    await database.query(`CREATE ROLE ${role} LOGIN; CREATE TABLE ${table} (id text);
      CREATE FUNCTION ${table}_ship() RETURNS trigger LANGUAGE plpgsql AS $body$ BEGIN
        PERFORM ${quoted(schema)}.enqueue('parcel.ship.v1', json_build_object('order', NEW.id));
        RETURN NEW;
      END $body$;
      CREATE TRIGGER ship AFTER INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION ${table}_ship();
      GRANT INSERT ON ${table} TO ${role};
      GRANT USAGE ON SCHEMA ${quoted(schema)} TO ${role};
      GRANT SELECT ON ${quoted(schema)}.job_types TO ${role};
      GRANT INSERT ON ${quoted(schema)}.jobs_hot, ${quoted(schema)}.worker_counters TO ${role};`)
    const url = new URL(databaseUrl(database.url, database.name))
    url.username = role
    let calls = 0
    const listening = postgres(database.url, { schema }).open(runtime)
    listening.onWake(() => void (calls += 1))
    await vi.waitFor(() => expect(calls).toBe(1), soon)
    await withClient(url.href, (client) =>
      client.query(`INSERT INTO ${table} SELECT 'batch-' || n FROM generate_series(1, 300) n`),
    )
    await vi.waitFor(() => expect(calls).toBeGreaterThan(1), soon)
    await listening.close()
    await work()
    expect(ran.filter((each) => each.startsWith('batch-'))).toHaveLength(300)
    await database.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
  })

  it('notifies once for many rows, and not at all for a job of later', async () => {
    const listener = new pg.Client(database.url)
    await listener.connect()
    const heard: string[] = []
    listener.on('notification', ({ channel }) => void heard.push(channel))
    const [row] = await database.query<{ readonly hash: string }>(
      `SELECT left(encode(sha256(convert_to($1, 'UTF8')), 'hex'), 16) AS hash`,
      [schema],
    )
    const channel = schema === 'chokaq' ? 'chokaq_wake' : `chokaq_wake_${row?.hash ?? ''}`
    await listener.query(`LISTEN "${channel}"`)
    await withClient(database.url, async (client) => {
      const many = call.replace('SELECT ', 'SELECT count(')
      await client.query(`${many}('image.resize.v1', '{}', delay => '1 hour')) FROM generate_series(1, 20)`)
      await client.query(`${many}('image.resize.v1', '{}')) FROM generate_series(1, 200)`)
    })
    await vi.waitFor(() => expect(heard).toEqual([channel]), soon)
    await listener.query('SELECT 1')
    expect(heard).toEqual([channel])
    await listener.end()
  })
})

describe('docs/postgres.md', () => {
  it('shows SQL that works, and grants that are enough', async () => {
    const blocks = codeBlocks('docs/postgres.md').filter(({ language }) => language === 'sql')
    expect(blocks).toHaveLength(3)
    for (const { text } of blocks) await database.query(text)
    const rows = await database.query<{ readonly payload: string }>(
      `SELECT payload->>'order' AS payload FROM chokaq.jobs_hot WHERE payload->>'order' LIKE 'o-%' ORDER BY 1`,
    )
    expect(rows.map(({ payload }) => payload)).toEqual(['o-1', 'o-2'])
    const url = new URL(databaseUrl(database.url, database.name))
    url.username = 'app_web'
    const stored = await withClient(url.href, (client) =>
      client.query(`SELECT chokaq.enqueue('image.resize.v1', '{"order":"web"}') AS id`),
    )
    const [{ id }] = stored.rows as [{ id: string }]
    url.username = 'app_worker'
    const chokaq = createChokaQ({ storage: postgres(url.href, { migrate: false }) })
    const run = async (): Promise<void> => undefined
    const worker = createWorker({ chokaq, handlers: [defineHandler(resize, { sideEffects: 'none', run })] })
    while ((await worker.tick()) > 0);
    expect(await chokaq.jobs.get(id)).toMatchObject({ state: 'completed' })
    await worker.stop()
    await chokaq.close()
    await database.query(`DROP OWNED BY app_web, app_worker; DROP ROLE app_web, app_worker`)
  })
})
