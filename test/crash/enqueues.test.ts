// K1 to K3: a producer dies around the commit of its enqueue.
import { describe, expect, test } from 'vitest'
import { crashRuns } from './cells.ts'
import { crashStorages } from './storages.ts'

describe.each(crashStorages())('a producer dies on $name', (storage) => {
  const open = crashRuns(storage, 'enqueues')

  test('K1 before the commit: the job is absent, and its retry is the only one', async (context) => {
    const run = await open(context)
    const orders = [run.order('none'), run.order('keyed'), run.order('none')]
    const ending = await run.producer('producer-a', orders, ['enqueue-before-commit:2'])
    expect(ending.signal).toBe('SIGKILL')
    await run.worker('worker-a')
    await run.drained()
    expect((await run.snapshot()).jobs).toHaveLength(1)
    await run.producer('producer-b', orders.slice(1))
    await run.drained()
    expect((await run.snapshot()).jobs).toHaveLength(3)
    expect(await run.verdict()).toEqual([])
  })

  test('K2 after the commit: the job is there once, and a retry with its id or key finds it', async (context) => {
    const run = await open(context)
    const named = run.order('none', {}, { id: '01890a5d-ac96-774b-bcce-b302099a8057' })
    const keyed = run.order('keyed')
    expect((await run.producer('producer-a', [named], ['enqueue-committed:1'])).signal).toBe('SIGKILL')
    expect((await run.producer('producer-b', [keyed], ['enqueue-committed:1'])).signal).toBe('SIGKILL')
    await run.producer('producer-c', [named, keyed])
    const answers = run.lines().flatMap((line) => (line.kind === 'enq.ok' ? [line.outcome] : []))
    expect(answers).toEqual(['enqueued', 'already-active'])
    await run.worker('worker-a')
    await run.drained()
    expect((await run.snapshot()).jobs).toHaveLength(2)
    expect(await run.verdict()).toEqual([])
  })

  test("K3 in the caller's transaction: the job is there if and only if the caller's row is", async (context) => {
    const run = await open(context)
    await run.chokaq.ready()
    const ending = await run.producer('producer-a', [
      run.order('none', {}, { transaction: 'commit' }),
      run.order('none', {}, { transaction: 'roll-back' }),
      run.order('none', {}, { transaction: 'roll-back-to-savepoint' }),
      run.order('keyed', {}, { transaction: 'commit' }),
      run.order('keyed', {}, { transaction: 'kill' }),
    ])
    expect(ending.signal).toBe('SIGKILL')
    await run.worker('worker-a')
    await run.drained()
    const { jobs, userRows } = await run.snapshot()
    expect([jobs.length, userRows.length]).toEqual([2, 2])
    expect(await run.verdict()).toEqual([])
  })
})
