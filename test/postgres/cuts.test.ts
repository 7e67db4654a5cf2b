// Every request of every act is cut once, in each way there is. `npm run proof:cuts` adds the connections that stay open
// and say nothing: each costs a deadline.
import { afterAll, describe, expect, it } from 'vitest'
import { createDatabase, keepOnFailure } from './database.ts'
import { acts, enqueues } from './cut-acts.ts'
import { everyCut } from './cut-stage.ts'
import { open } from './scene.ts'
import { WireProxy, type CutKind } from './wire-proxy.ts'

const database = await createDatabase()
await database.query('CREATE TABLE public.app_rows (note text NOT NULL)')
const direct = open(database.url, { listen: false })
const proxy = await WireProxy.before(database.url)
const where = { direct, database, proxy }
const isProof = process.env['CHOKAQ_CUTS'] === 'all'
const kinds: readonly CutKind[] = ['before', 'after', 'middle', 'late', ...(isProof ? (['half-open'] as const) : [])]
/** They end as other acts do, and take the time of many. */
const rare = [
  'settle: bury',
  'settle: skip',
  'settle: defer',
  'settle: cancel',
  'settle: release',
  'resurrect',
  'prune',
]
const wanted = isProof ? acts : acts.filter(({ name }) => !rare.includes(name))
let cutCount = 0

afterAll(async () => {
  process.stdout.write(`${cutCount} requests to PostgreSQL were cut\n`)
  await direct.close()
  await proxy.close()
  await database.drop()
})

describe.each(kinds)('a connection is cut: %s', (kind) => {
  it.each(wanted)(
    '$name',
    async (act) => {
      keepOnFailure(database)
      const { count, requests } = await everyCut(act, kind, where)
      cutCount += count
      expect(requests.length).toBeGreaterThan(0)
      if (isProof) process.stdout.write(`${act.name}, ${kind}: ${requests.join(' | ')}\n`)
    },
    600_000,
  )

  it.each(enqueues)(
    '$name, and no connection comes afterwards',
    async (act) => {
      keepOnFailure(database)
      cutCount += (await everyCut(act, kind, where, true)).count
    },
    600_000,
  )
})
