/** I4, I22: what is stored comes back as it was, and no content stops a failure from being recorded. */
import { describeFailure, type StoredFailure } from '../../core/failure.ts'
import { bury, complete, retry } from './actions.ts'
import { fromTable, type CaseGroup } from './cases.ts'
import { keyedJob, keyOf, newJob } from './new-job.ts'
import { keyed, operator, plain, type Scene } from './scene.ts'

const texts: readonly (readonly [string, string])[] = [
  ['an empty text', ''],
  ['an emoji with a joiner', '👩‍🚀 and 🇺🇦'],
  ['letters of many scripts', 'Żółć ñandú 漢字 עברית हिन्दी'],
  ['quotes of every kind', `'single' "double" \`back\` ''twice''`],
  ['a statement that ends this one', `x'); DROP TABLE chokaq_jobs_hot; --`],
  ['backslashes and braces', 'C:\\temp\\{0}${1}%s?$1:name@p1'],
  ['line ends and tabs', 'a\r\nb\u2028c\td'],
  ['the text null', 'null'],
  ['a number with a leading zero', '007'],
  ['a very long line', 'x'.repeat(20_000)],
]

const payloads: readonly (readonly [string, string])[] = [
  ...texts.map(([name, text]) => [name, JSON.stringify({ text })] as const),
  ['an escaped NUL', '{"text":"a\\u0000b"}'],
  ['half of a surrogate pair, escaped', '{"text":"\\ud800"}'],
  ['own __proto__ and constructor keys', '{"__proto__":{"polluted":true},"constructor":{"prototype":{}}}'],
  ['a name twice', '{"a":1,"a":2}'],
  ['numbers beyond what JavaScript counts exactly', '[9007199254740993,1e400,-0,0.1000]'],
  ['a bare text', '"just text"'],
  ['null', 'null'],
  ['a megabyte', JSON.stringify({ text: 'é'.repeat(500_000) })],
  ['a deep nest', `${'['.repeat(400)}${']'.repeat(400)}`],
]

const roundTrips = fromTable(
  payloads,
  ([name]) => `I4 a payload with ${name} comes back to the letter, everywhere`,
  async (scene, [, payload]) => {
    const { expect } = scene
    const job = await scene.add({ payload })
    expect((await scene.record(job.id)).payload === payload).toBe(true)
    const fetched = await scene.fetchOne(plain)
    expect(fetched.payload === payload).toBe(true)
    await scene.mustStart(fetched.lease, plain)
    await scene.mustSettle(fetched.lease, bury(), 'dead')
    expect((await scene.record(job.id)).payload === payload).toBe(true)
    await scene.resurrect(job.id)
    const again = await scene.fetchOne(plain)
    expect(again.payload === payload).toBe(true)
    await scene.mustStart(again.lease, plain)
    await scene.mustSettle(again.lease, complete({ result: payload }), 'completed')
    const done = await scene.record(job.id)
    expect([done.payload === payload, done.result === payload]).toEqual([true, true])
    expect(Object.prototype).not.toMatchObject({ polluted: true })
  },
)

/** What handlers throw. Each is cleaned by describeFailure, as the engine does before it settles. */
const thrown: readonly (readonly [string, unknown])[] = [
  ...texts.map(([name, text]) => [`an error that says ${name}`, new TypeError(text)] as const),
  ['an error with NUL in its text', new TypeError('before\u0000after')],
  ['an error with half a surrogate pair', new TypeError('broken \ud800 pair')],
  ['a text', 'just a text \u0000'],
  ['nothing', undefined],
  ['null', null],
  ['an error with a megabyte of text', new TypeError('é'.repeat(1_000_000))],
  ['a circle of causes', circular()],
  ['an error with a __proto__ key', JSON.parse('{"name":"E","message":"m","__proto__":{"x":1}}')],
]

function circular(): Error {
  const error = new TypeError('around') as Error & { cause?: unknown }
  error.cause = error
  return error
}

async function recordsFailure(scene: Scene, failure: StoredFailure): Promise<void> {
  const { expect } = scene
  const first = await scene.running()
  await scene.mustSettle(first.lease, retry({ failure }), 'retried')
  expect((await scene.record(first.lease.jobId)).failure).toEqual(failure)
  const again = await scene.fetchOne(plain)
  await scene.mustStart(again.lease, plain)
  await scene.mustSettle(again.lease, bury({ failure }), 'dead')
  expect((await scene.record(again.lease.jobId)).failure).toEqual(failure)
  // One bad text must not blind a whole list.
  expect(await scene.all('dlq')).toHaveLength(1)
}

const failures = fromTable(
  thrown,
  ([name]) => `I22 a handler that throws ${name} is recorded, and shown`,
  (scene, [, value]) => recordsFailure(scene, describeFailure(value)),
)

const names = texts.filter(([, text]) => text !== '' && text.length < 200)

const labels = fromTable(
  names,
  ([name]) => `a queue, type, tag and key with ${name} are told from all others`,
  async (scene, [, text]) => {
    const { runtime, expect } = scene
    const type = `type ${text}`
    const job = keyedJob(runtime, text, { queue: text, type, tags: [text, 'plain'], tenant: text })
    await scene.insert(job, newJob(runtime, { queue: 'default' }))
    const record = await scene.record(job.id)
    expect(record).toMatchObject({ queue: text, type, tags: [text, 'plain'], tenant: text })
    expect(record.keyPrefix).toBe(keyOf(runtime, text).prefix)
    for (const filter of [{ queue: text }, { type }, { tag: text }, { keyPrefix: record.keyPrefix ?? '' }]) {
      const { jobs } = await scene.inspector.list({ pillar: 'hot', filter, limit: 10, cursor: undefined })
      expect(jobs.map(({ id }) => id)).toEqual([job.id])
    }
    await scene.inspector.setQueue({ name: text, maxConcurrency: 1 }, { actor: text, note: text })
    const fetched = await scene.fetchOne({ ...keyed, type }, { queue: text })
    expect(fetched.lease.jobId).toBe(job.id)
    expect((await scene.inspector.queues()).some(({ name }) => name === text)).toBe(true)
    expect(await scene.inspector.audit({ limit: 1, beforeId: undefined })).toMatchObject([{ actor: text, note: text }])
  },
)

export const contentCases: CaseGroup = {
  title: 'content',
  cases: {
    ...roundTrips,
    ...failures,
    ...labels,

    'an id that looks like a statement is only an id': async (scene) => {
      const { expect } = scene
      await scene.add()
      const id = `' OR '1'='1`
      expect(await scene.find(id)).toBeUndefined()
      expect(await scene.inspector.cancel(id, operator)).toEqual({ kind: 'not-found' })
      expect(await scene.inspector.purge({ jobIds: [id], limit: 10 }, operator)).toBe(0)
      expect(await scene.marker(id)).toBeUndefined()
      expect(await scene.all('hot')).toHaveLength(1)
    },

    'texts that differ only in case, accents or trailing spaces are different': async (scene) => {
      const { expect } = scene
      const queues = ['mail', 'Mail', 'mail ', 'máil']
      for (const queue of queues) await scene.add({ queue })
      for (const queue of queues) expect(await scene.fetch([plain], { queue })).toHaveLength(1)
      for (const key of queues) await scene.addKeyed(key)
      expect(await scene.counter('jobs.deduplicated')).toBe(0)
    },

    'many tags come back in their order': async (scene) => {
      const tags = ['z', 'a', 'a,b', '["x"]', ' ', 'é']
      const job = await scene.add({ tags })
      scene.expect((await scene.record(job.id)).tags).toEqual(tags)
      scene.expect((await scene.fetchOne(plain)).tags).toEqual(tags)
    },
  },
}
