// A completion in the user's transaction judges what the ledger says now, not what it said when the transaction began.
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { boom, complete } from '../../src/testing/conformance/actions.ts'
import { keyedJob, keyedPolicy } from '../../src/testing/conformance/new-job.ts'
import { createDatabase } from './database.ts'
import { codeOf, open, register, runtime } from './scene.ts'

const database = await createDatabase()
const driver = open(database.url)
const client = new pg.Client({ connectionString: database.url })
beforeAll(async () => {
  await driver.ready()
  await register(driver)
  await client.connect()
})
afterAll(async () => {
  await client.end()
  await driver.close()
  await database.drop()
})

test.each(['REPEATABLE READ', 'SERIALIZABLE'])('a completion with effects is refused under %s', async (level) => {
  await driver.enqueue([keyedJob(runtime, level)])
  const policies = [keyedPolicy({ fastStart: true })]
  const [job] = await driver.fetch({ workerId: 'w', queue: 'default', limit: 1, policies })
  if (job?.key === undefined) throw new Error('nothing was fetched')
  await client.query(`BEGIN ISOLATION LEVEL ${level}`)
  await client.query('SELECT count(*) FROM chokaq.jobs_hot')
  const { lease, generation } = job
  const ref = { kind: 'effect', keyRef: job.key.hash, generation, name: 'charge', item: '' } as const
  const of = { provider: 'acme', providerKey: null, fingerprint: 'f', input: '{}', workerId: 'w', attempt: 1 }
  const id = runtime.newId()
  const intent = { kind: 'open', lease, ref, id, ...of, seenIds: [], absentIds: [], keepMs: 1_000 } as const
  const lost = { kind: 'close', id, state: 'ambiguous', result: null, failure: boom, replayed: false } as const
  await driver.ledger([intent, { ...lost, supersedes: 'none' }])
  const completing = driver.completeIn(client, { lease, outcomes: [], action: complete({ guard: true }) })
  expect(await codeOf(completing)).toBe('CHOKAQ_TX_UNSUPPORTED')
  await client.query('ROLLBACK')
  expect(await driver.inspector.get(lease.jobId)).toMatchObject({ state: 'processing' })
})
