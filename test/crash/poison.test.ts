// Handlers that take their process down, or hold it for ever: each ends within its budget, and what stands beside it
// completes.
import { describe, expect, test } from 'vitest'
import { crashRuns } from './cells.ts'
import type { CrashRun, WorkerAsk } from './crash-run.ts'
import { crashStorages } from './storages.ts'

const budgets = { crashBudget: 2, fetchCrashBudget: 10, concurrency: 4 } as const
const smallHeap = ['--max-old-space-size=40']

/**
 * A supervisor: a worker that dies is started again, until nothing is left to do. Gives the number of deaths. What
 * each of them died of stands in the message, because not every death must be the poison's.
 */
async function supervised(run: CrashRun, ask: WorkerAsk, maxDeaths: number): Promise<number> {
  const deaths: string[] = []
  for (;;) {
    const worker = await run.worker(`worker-${deaths.length + 1}`, ask)
    const drained = run.drained(30_000).then(() => 'drained' as const)
    drained.catch(() => undefined)
    const what = await Promise.race([drained, worker.ended])
    if (what === 'drained') return deaths.length
    deaths.push(run.lastWordsOf(worker))
    expect(deaths.length, `the poison goes on for ever\n${deaths.join('\n')}`).toBeLessThanOrEqual(maxDeaths)
  }
}

async function healthy(run: CrashRun, count: number): Promise<readonly string[]> {
  const ids: string[] = []
  for (let i = 0; i < count; i += 1)
    ids.push(await run.enqueue((['none', 'ledger', 'keyed'] as const)[i % 3] ?? 'none'))
  return ids
}

async function expectCompleted(run: CrashRun, ids: readonly string[]): Promise<void> {
  for (const id of ids) expect(await run.job(id)).toMatchObject({ state: 'completed' })
}

describe.concurrent.each(crashStorages())('poison on $name', (storage) => {
  const open = crashRuns(storage, 'poison')

  test.for(['kill-before', 'exit'] as const)(
    'a handler that ends its process (%s) is buried as Interrupted',
    async (deed, context) => {
      const run = await open(context)
      const before = await healthy(run, 5)
      const poison = await run.enqueue('none', { do: deed })
      const after = await healthy(run, 5)
      await supervised(run, { options: budgets }, 4)
      expect(await run.job(poison)).toMatchObject({ state: 'dead', reason: 'Interrupted', crashCount: 3 })
      await expectCompleted(run, [...before, ...after])
      expect(await run.verdict({ crashBudget: 2 })).toEqual([])
    },
  )

  test('a handler that exhausts the memory is buried as Interrupted', async (context) => {
    const run = await open(context)
    const before = await healthy(run, 3)
    const poison = await run.enqueue('ledger', { do: 'oom' })
    const after = await healthy(run, 3)
    await supervised(run, { options: budgets, nodeFlags: smallHeap }, 4)
    expect(await run.job(poison)).toMatchObject({ state: 'dead', reason: 'Interrupted' })
    await expectCompleted(run, [...before, ...after])
    expect(await run.verdict({ crashBudget: 2 })).toEqual([])
  })

  test.for([
    ['none', 'oom-in-schema', false],
    ['raw', 'oom-in-key', true],
  ] as const)(
    'a %s job whose contract exhausts the memory (%s) is buried, and it alone',
    async ([kind, deed, raw], context) => {
      const run = await open(context)
      const poison = await run.enqueue(kind, { do: deed }, { raw })
      const beside = await healthy(run, 8)
      const reviewed = await run.enqueue('review')
      // Small, so that the test is short; what is innocent must not come near it.
      await supervised(run, { options: { ...budgets, fetchCrashBudget: 3 }, nodeFlags: smallHeap }, 8)
      expect(await run.job(poison)).toMatchObject({ state: 'dead', reason: 'Interrupted' })
      await expectCompleted(run, [...beside, reviewed])
      expect(await run.verdict({ crashBudget: 2 })).toEqual([])
    },
  )

  test('a handler that holds the event loop for longer than the fence runs again and completes', async (context) => {
    const run = await open(context)
    const id = await run.enqueue('ledger', { do: 'block', ms: 2_500, times: 1 })
    const beside = await healthy(run, 4)
    await run.worker('worker-a', { options: budgets })
    await run.line('fenced')
    await run.drained()
    expect((await run.job(id)).state).toBe('completed')
    await expectCompleted(run, beside)
    expect(await run.verdict({ crashBudget: 2 })).toEqual([])
  })

  test('a handler that never settles times out, is retried and ends; its worker stops cleanly', async (context) => {
    const run = await open(context)
    const hanging = await run.enqueue('short', { do: 'hang' })
    const beside = await healthy(run, 6)
    await run.worker('worker-a')
    await run.drained()
    expect(await run.job(hanging)).toMatchObject({ state: 'dead', reason: 'Timeout', attempt: 4, failureCount: 4 })
    await expectCompleted(run, beside)
    expect(await run.verdict()).toEqual([])
  })

  test('a promise that rejects after its handler returned costs the process, and no job', async (context) => {
    const run = await open(context)
    const ids = [await run.enqueue('ledger', { do: 'reject-later', times: 1 }), ...(await healthy(run, 4))]
    expect(await supervised(run, { options: budgets }, 2)).toBe(1)
    await expectCompleted(run, ids)
    expect(await run.verdict({ crashBudget: 2 })).toEqual([])
  })
})
