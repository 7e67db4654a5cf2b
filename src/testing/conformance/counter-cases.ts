/** I21: the counters are as true as the rows, because they commit with them. */
import type { JobRecord } from '../../core/job.ts'
import { complete, retry } from './actions.ts'
import { fromTable, type CaseGroup } from './cases.ts'
import { newJob } from './new-job.ts'
import { RandomWalk } from './random-walk.ts'
import { plain, type Scene } from './scene.ts'

interface Pillars {
  readonly hot: readonly JobRecord[]
  readonly archive: readonly JobRecord[]
  readonly dlq: readonly JobRecord[]
}

async function pillarsOf(scene: Scene): Promise<Pillars> {
  return { hot: await scene.all('hot'), archive: await scene.all('archive'), dlq: await scene.all('dlq') }
}

/** What was let in is somewhere, or its going was counted. */
async function expectConserved(scene: Scene, { hot, archive, dlq }: Pillars): Promise<void> {
  const enqueued = await scene.counter('jobs.enqueued')
  const gone = (await scene.counter('jobs.pruned')) + (await scene.counter('jobs.purged'))
  scene.expect(hot.length + archive.length + dlq.length + gone).toBe(enqueued)
  const ids = [...hot, ...archive, ...dlq].map(({ id }) => id)
  scene.expect(new Set(ids).size, 'a job is in exactly one pillar').toBe(ids.length)
}

/** Only where nothing was pruned: each row of the archive and the DLQ was counted when it got there. */
async function expectOutcomesCounted(scene: Scene, { archive, dlq }: Pillars): Promise<void> {
  for (const [outcome, name] of [
    ['completed', 'jobs.completed'],
    ['skipped', 'jobs.skipped'],
    ['cancelled', 'jobs.cancelled'],
  ] as const) {
    scene.expect(await scene.counter(name), name).toBe(archive.filter(({ state }) => state === outcome).length)
  }
  const left = (await scene.counter('jobs.resurrected')) + (await scene.counter('jobs.purged'))
  scene.expect((await scene.counter('jobs.dlq')) - left).toBe(dlq.length)
}

async function expectSoundRows(scene: Scene, { hot, dlq }: Pillars): Promise<void> {
  const { expect } = scene
  const keys = hot.flatMap(({ keyHash }) => (keyHash === null ? [] : [keyHash]))
  expect(new Set(keys).size, 'R1 one active job per key').toBe(keys.length)
  for (const row of hot) {
    const owned = row.state === 'fetched' || row.state === 'processing'
    expect(row.workerId !== null, `${row.state} has an owner or none`).toBe(owned)
    if (row.state === 'processing') expect(row.attempt).toBeGreaterThan(0)
  }
  for (const row of dlq.filter(({ inDoubt, keyHash }) => inDoubt && keyHash !== null)) {
    expect((await scene.marker(row.keyHash ?? ''))?.expiresAtMs, 'a doubt has no end').toBeUndefined()
  }
  const count = (queue: string, state: string): number =>
    hot.filter((row) => row.queue === queue && row.state === state).length
  for (const queue of await scene.inspector.queues()) {
    const { name } = queue
    expect(queue).toMatchObject({
      scheduledCount: count(name, 'scheduled'),
      pendingCount: count(name, 'pending'),
      fetchedCount: count(name, 'fetched'),
      processingCount: count(name, 'processing'),
      deadCount: dlq.filter((row) => row.queue === name).length,
    })
  }
}

async function walk(scene: Scene, prunes: boolean): Promise<void> {
  await scene.worker('worker-2')
  const walker = new RandomWalk(scene, { prunes })
  for (let leg = 0; leg < 10; leg += 1) {
    await walker.run(20)
    const pillars = await pillarsOf(scene)
    await expectConserved(scene, pillars)
    if (!prunes) await expectOutcomesCounted(scene, pillars)
    await expectSoundRows(scene, pillars)
  }
}

const walks = fromTable(
  [1, 2, 3, 4, 5, 6].map((seed) => ({ seed, prunes: seed % 2 === 0 })),
  ({ seed, prunes }) => `I21 after 200 random steps, seed ${seed}${prunes ? ', history pruned' : ''}: nothing is lost`,
  // The runtime's seed is made of the case's name, so that every walk is another one.
  (scene, { prunes }) => walk(scene, prunes),
)

export const counterCases: CaseGroup = {
  title: 'counters',
  cases: {
    'counters are kept by queue and type': async (scene) => {
      const { runtime, expect } = scene
      await scene.insert(newJob(runtime), newJob(runtime, { queue: 'other' }), newJob(runtime, { type: 'x.v1' }))
      await scene.insert(newJob(runtime))
      const rows = (await scene.inspector.stats()).filter(({ name }) => name === 'jobs.enqueued')
      const sums = rows.map(({ queue, type, label, value }) => [queue, type, label, value])
      expect(sums.sort()).toEqual([
        ['default', 'mail.send.v1', '', 2],
        ['default', 'x.v1', '', 1],
        ['other', 'mail.send.v1', '', 1],
      ])
    },

    'a job is counted once for each thing that happens to it': async (scene) => {
      const { expect } = scene
      const first = await scene.running()
      await scene.mustSettle(first.lease, retry(), 'retried')
      const again = await scene.fetchOne(plain)
      await scene.mustStart(again.lease, plain)
      await scene.mustSettle(again.lease, complete(), 'completed')
      const sums = Object.fromEntries((await scene.inspector.stats()).map(({ name, value }) => [name, value]))
      expect(sums).toEqual({ 'jobs.enqueued': 1, 'jobs.failed': 1, 'jobs.retried': 1, 'jobs.completed': 1 })
    },

    ...walks,
  },
}
