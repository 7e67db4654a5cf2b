// K11 and K23: workers that stop for too long, and workers that are told to stop.
import { describe, test } from 'vitest'
import { crashRuns } from './cells.ts'
import { leaseTimes } from './fixtures/work.ts'
import { linesOf } from './history.ts'
import { crashStorages } from './storages.ts'
import { until } from './until.ts'

describe.concurrent.each(crashStorages())('pauses on $name', (storage) => {
  const open = crashRuns(storage, 'pauses')

  test('K11 frozen for three times the dead time: another one finishes, and what the frozen one says is refused', async (context) => {
    const { expect } = context
    const run = await open(context)
    const gate = run.gate()
    const parent = await run.enqueue('parent', { ...gate.deaf, children: 2 })
    const frozen = await run.worker('worker-a')
    await run.line('run.begin', ({ job }) => job === parent)
    const frozenAtMs = performance.now()
    // Not in the middle of a transaction: one that stands still with the lock of the file would lock everybody out.
    const release = await run.database.holdLock()
    frozen.freeze()
    await release()
    const second = await run.worker('worker-b')
    await run.line('run.begin', ({ job, pid }) => job === parent && pid === second.pid)
    gate.open()
    await run.place(parent, ({ state }) => state === 'completed')
    const pauseMs = 3 * leaseTimes.deadAfter
    await until('the pause to pass', 10_000, () => performance.now() - frozenAtMs > pauseMs)
    frozen.thaw()
    await run.line('fenced', ({ pid }) => pid === frozen.pid)
    await run.line('run.end', ({ pid, job }) => pid === frozen.pid && job === parent)
    await run.drained()
    // Its children are anybody's: where the parent ended late, the thawed worker may run them.
    const acks = linesOf(run.lines(), 'ack.ok').filter(({ pid, job }) => pid === frozen.pid && job === parent)
    expect(acks.filter(({ repeated }) => !repeated)).toEqual([])
    expect((await run.snapshot()).jobs.filter(({ parentId }) => parentId === parent)).toHaveLength(2)
    expect(await run.verdict()).toEqual([])
  })

  test('K11 an event loop that stands still: another one finishes, and the late outcome is refused', async (context) => {
    const { expect } = context
    const run = await open(context)
    await Promise.all([run.worker('worker-a'), run.worker('worker-b')])
    const id = await run.enqueue('keyed', { do: 'block', ms: 6_000, times: 1 })
    const stalled = await run.line('run.begin', ({ job }) => job === id)
    await run.line('ack.ok', ({ job, pid }) => job === id && pid !== stalled.pid)
    await run.line('fenced', ({ pid }) => pid === stalled.pid)
    await run.line('run.end', ({ job, pid }) => job === id && pid === stalled.pid)
    const taken = run.lines().filter((line) => line.kind === 'ack.ok' && line.pid === stalled.pid && line.job === id)
    expect(taken).toEqual([])
    // It comes back under a new id and works on.
    await run.enqueue('none')
    await run.drained()
    expect(await run.job(id)).toMatchObject({ state: 'completed', attempt: 2 })
    expect(await run.verdict()).toEqual([])
  })

  test('K10 K11 a process that nobody can look up is dead by its silence alone', async (context) => {
    const { expect } = context
    const run = await open(context)
    const gate = run.gate()
    const id = await run.enqueue('ledger', gate.deaf)
    const other = await run.enqueue('none')
    const silent = await run.worker('worker-a', { anonymous: true })
    await run.line('run.begin', ({ job }) => job === id)
    await run.place(other, ({ state }) => state === 'completed')
    const killedAtMs = performance.now()
    await silent.kill('with no identity')
    await run.worker('worker-b')
    await run.line('rescued', ({ job }) => job === id)
    expect(performance.now() - killedAtMs).toBeGreaterThan(leaseTimes.deadAfter - leaseTimes.heartbeat)
    gate.open()
    await run.drained()
    expect(await run.verdict()).toEqual([])
  })

  test('K10 dead before a beat is committed: taken back like any other', async (context) => {
    const { expect } = context
    const run = await open(context)
    const gate = run.gate()
    const id = await run.enqueue('keyed', gate.deaf)
    const worker = await run.worker('worker-a', { faults: ['heartbeat-before-commit:3'] })
    expect((await worker.ended).signal).toBe('SIGKILL')
    gate.open()
    await run.worker('worker-b')
    await run.drained()
    expect(await run.job(id)).toMatchObject({ state: 'completed', attempt: 2 })
    expect(await run.verdict()).toEqual([])
  })

  test('K10 no beat gets through, because somebody holds the lock: the worker fences itself and comes back', async (context) => {
    const { expect } = context
    const run = await open(context)
    const gate = run.gate()
    const id = await run.enqueue('keyed', gate.held)
    await run.worker('worker-a')
    await run.line('run.begin', ({ job }) => job === id)
    const release = await run.database.holdLock()
    await run.line('fenced')
    await run.line('abort', ({ job, reason }) => job === id && reason === 'CHOKAQ_LEASE_LOST')
    await release()
    gate.open()
    await run.drained()
    expect(await run.job(id)).toMatchObject({ state: 'completed', attempt: 2 })
    expect(await run.verdict()).toEqual([])
  })

  test.for([0, 0.5, 1, 2])(
    'K23 asked to stop, and killed after %d of the grace: finished or back, no third state',
    async (share, context) => {
      const { expect } = context
      const run = await open(context)
      const gate = run.gate()
      const graceMs = 1_000
      const short = await run.enqueue('ledger', { do: 'wait', ms: 200 })
      const held = await run.enqueue('ledger', gate.held)
      const deaf = await run.enqueue('keyed', gate.deaf)
      const waiting = await run.enqueue('none', {}, { delayMs: 300 })
      const options = { shutdownGrace: graceMs, abortGrace: 300 }
      const worker = await run.worker('worker-a', { options })
      for (const job of [short, held, deaf]) await run.line('run.begin', (line) => line.job === job)
      const askedAtMs = performance.now()
      worker.askToStop(graceMs)
      await until('the share of the grace', 10_000, () => performance.now() - askedAtMs >= share * graceMs)
      // At twice the grace it has long ended by itself, and this kill hits nobody.
      if (share < 2) await worker.kill(`at ${share} of the grace`)
      else expect(await worker.ended).toEqual({ code: 0, signal: null })
      gate.open()
      await run.worker('worker-b')
      await run.drained()
      for (const job of [short, held, deaf, waiting]) expect((await run.job(job)).state).toBe('completed')
      expect(await run.verdict()).toEqual([])
    },
  )
})
