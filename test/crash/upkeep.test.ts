// K12 to K14, K19, K20 and K22: deaths while jobs are rescued, retried, buried, brought back, limited and pruned.
import { describe, expect, test } from 'vitest'
import { crashRuns } from './cells.ts'
import type { CrashRun } from './crash-run.ts'
import { crashStorages, sqliteFile } from './storages.ts'

const by = { actor: 'test', note: 'for the test' }

async function dieAt(run: CrashRun, name: string, point: string): Promise<void> {
  const worker = await run.worker(name, { faults: [point] })
  expect((await worker.ended).signal, `${name} reaches ${point}`).toBe('SIGKILL')
}

async function finish(run: CrashRun): Promise<void> {
  await run.worker('worker-z')
  await run.drained()
  expect(await run.verdict()).toEqual([])
}

async function count(run: CrashRun, name: string): Promise<number> {
  const rows = (await run.snapshot()).stats.filter((row) => row.name === name)
  return rows.reduce((sum, row) => sum + row.value, 0)
}

describe.each(crashStorages())('upkeep dies on $name', (storage) => {
  const open = crashRuns(storage, 'upkeep')

  test('K12 rescuers die before and after their commit, and two rescue at once: each job is taken back once', async (context) => {
    const run = await open(context)
    const gate = run.gate()
    for (const kind of ['none', 'ledger', 'keyed'] as const) await run.enqueue(kind, gate.held)
    const first = await run.worker('worker-a')
    for (const kind of ['none', 'ledger', 'keyed']) {
      await run.line('run.begin', ({ type }) => type === `crash.${kind}.v1`)
    }
    await first.kill('while it held three jobs')
    await dieAt(run, 'worker-b', 'rescue-before-commit:1')
    expect(await count(run, 'jobs.rescued')).toBe(0)
    await dieAt(run, 'worker-c', 'rescue-committed:1')
    gate.open()
    await Promise.all([run.worker('worker-d'), run.worker('worker-e')])
    await run.drained()
    expect(await count(run, 'jobs.rescued')).toBe(3)
    expect(await run.verdict()).toEqual([])
  })

  test.for([
    // The first failure was never recorded; an uncharged crash of a fast start stands in its place.
    ['settle-before-commit:1', 1],
    ['settle-committed:1', 2],
  ] as const)(
    'K13 recording a failure, dead at %s: charged once or not at all',
    async ([point, failureCount], context) => {
      const run = await open(context)
      const id = await run.enqueue('none', { do: 'throw', times: 2 })
      await dieAt(run, 'worker-a', point)
      await finish(run)
      expect(await run.job(id)).toMatchObject({ state: 'completed', attempt: 3, failureCount, crashCount: 0 })
    },
  )

  test.for(['settle-before-commit:1:lost', 'settle-committed:1:lost', 'settle-before-commit:2:lost'])(
    'K13 recording a failure, cut at %s: repeated, charged once',
    async (point, context) => {
      const run = await open(context)
      const id = await run.enqueue('none', { do: 'throw', times: 2 })
      await run.worker('worker-a', { faults: [point] })
      await run.drained()
      expect(await run.job(id)).toMatchObject({ state: 'completed', attempt: 3, failureCount: 2 })
      expect(await run.verdict()).toEqual([])
    },
  )

  test('K14 dead while burying, and while a bulk is brought back: one place each, and the bulk can be run again', async (context) => {
    const run = await open(context)
    const ids = await Promise.all(Array.from({ length: 30 }, () => run.enqueue('none', { do: 'fatal' })))
    await dieAt(run, 'worker-a', 'settle-before-commit:1')
    await dieAt(run, 'worker-b', 'settle-committed:1')
    const third = await run.worker('worker-c')
    await run.drained()
    await run.stop(third)
    expect((await run.operator('operator-a', ['resurrect-before-commit:11'])).signal).toBe('SIGKILL')
    expect(await count(run, 'jobs.resurrected')).toBe(10)
    expect((await run.operator('operator-b')).code).toBe(0)
    expect(await count(run, 'jobs.resurrected')).toBe(30)
    const acts = await run.chokaq.insight.audit({ limit: 100 })
    expect(new Set(acts.map(({ subject }) => subject))).toEqual(new Set(ids))
    await finish(run)
    for (const id of ids) expect(await run.job(id)).toMatchObject({ state: 'dead', reason: 'FatalError' })
  })

  test('K19 dead between a fetch and its start: the limit of the queue is never passed and is whole again', async (context) => {
    const run = await open(context)
    await run.chokaq.queues.limit('default', 2, by)
    run.history.write({ kind: 'limit', queue: 'default', n: 2 })
    for (let i = 0; i < 12; i += 1) await run.enqueue(i % 2 === 0 ? 'none' : 'review', { do: 'wait', ms: 20 })
    await dieAt(run, 'worker-a', 'fetch-committed:1')
    await dieAt(run, 'worker-b', 'settle-before-commit:1')
    await run.worker('worker-c')
    await finish(run)
    expect(run.lines().filter((line) => line.kind === 'run.end').length).toBeGreaterThanOrEqual(11)
  })

  test.for(['settle-before-commit:1', 'settle-committed:1'])(
    'K20 a RetryAfter, dead at %s: free of charge',
    async (point, context) => {
      const run = await open(context)
      const id = await run.enqueue('none', { do: 'later', times: 2, ms: 50 })
      await dieAt(run, 'worker-a', point)
      await finish(run)
      expect(await run.job(id)).toMatchObject({ state: 'completed', failureCount: 0, crashCount: 0 })
    },
  )

  test.for(['settle-before-commit:1', 'settle-committed:1'])(
    'K20 a completion with children, dead at %s: all of them, once',
    async (point, context) => {
      const run = await open(context)
      const id = await run.enqueue('parent', { children: 3 })
      await dieAt(run, 'worker-a', point)
      const children = (await run.snapshot()).jobs.filter(({ parentId }) => parentId === id)
      expect(children).toHaveLength(point.startsWith('settle-committed') ? 3 : 0)
      await finish(run)
      expect((await run.snapshot()).jobs.filter(({ parentId }) => parentId === id)).toHaveLength(3)
    },
  )

  test('K22 dead while pruning: nothing live is removed, and the next one prunes', async (context) => {
    const run = await open(context)
    await run.chokaq.queues.retain('default', { archiveRetentionMs: 0 }, by)
    for (let i = 0; i < 5; i += 1) await run.enqueue('none')
    const later = await run.enqueue('keyed', {}, { delayMs: 600_000 })
    await run.worker('worker-a')
    await run.place(later, ({ state }) => state === 'scheduled')
    await run.line('run.end')
    await dieAt(run, 'worker-b', 'prune-before-commit:1')
    await run.worker('worker-c')
    await run.line('up', ({ by: name }) => name === 'worker-c')
    expect((await run.job(later)).state).toBe('scheduled')
    expect(await run.verdict()).toEqual([])
  })

  // A server writes its checkpoints itself; test/postgres/restarts.test.ts stops it at any moment.
  test.runIf(storage === sqliteFile)(
    'K22 dead after a checkpoint: the file opens, is sound, and has every job',
    async (context) => {
      const run = await open(context)
      const producer = run.stream('producer-a', 7, 7_000, ['checkpoint:1'])
      expect((await producer.ended).signal).toBe('SIGKILL')
      expect(await run.database.damage()).toEqual([])
      await run.worker('worker-a')
      await run.drained()
      expect(await run.verdict()).toEqual([])
    },
  )
})
