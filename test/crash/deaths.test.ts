// K4 to K9 and K17: a worker dies at each step of a job. One worker dies at the point, a second one does the rest.
import { describe, expect, test } from 'vitest'
import { crashRuns } from './cells.ts'
import type { CrashRun } from './crash-run.ts'
import { crashStorages } from './storages.ts'

/** Enqueues from outside, lets a worker die at the point, and gives what stands in the database then. */
async function dieAt(run: CrashRun, point: string): Promise<void> {
  const worker = await run.worker('worker-a', { faults: [point] })
  expect((await worker.ended).signal, `the worker reaches ${point}`).toBe('SIGKILL')
}

async function finish(run: CrashRun): Promise<void> {
  await run.worker('worker-b')
  await run.drained()
  expect(await run.verdict()).toEqual([])
}

function effectCount(run: CrashRun, job: string): number {
  return run.lines().filter((line) => line.kind === 'effect' && line.job === job).length
}

describe.each(crashStorages())('a worker dies on $name', (storage) => {
  const open = crashRuns(storage, 'deaths of workers')

  test('K4 before a fetch is committed: nothing is charged', async (context) => {
    const run = await open(context)
    const ids = [await run.enqueue('none'), await run.enqueue('review')]
    await dieAt(run, 'fetch-before-commit:1')
    for (const id of ids) expect(await run.job(id)).toMatchObject({ state: 'pending', attempt: 0, token: 0 })
    await finish(run)
    for (const id of ids)
      expect(await run.job(id)).toMatchObject({ state: 'completed', attempt: 1, fetchCrashCount: 0 })
  })

  test('K5 after a fetch is committed, its reply lost: all come back, and nobody is charged for a start', async (context) => {
    const run = await open(context)
    const plain = await run.enqueue('none')
    const gated = await run.enqueue('review')
    await dieAt(run, 'fetch-committed:1')
    await finish(run)
    // The fetch itself had started the plain one; whether its handler ran, nobody can tell, so it is no crash.
    expect(await run.job(plain)).toMatchObject({ state: 'completed', attempt: 2, crashCount: 0 })
    expect(await run.job(gated)).toMatchObject({ state: 'completed', attempt: 1, fetchCrashCount: 1 })
  })

  test('K5 with a full buffer: what waited in it is not lost', async (context) => {
    const run = await open(context)
    const gate = run.gate()
    const held = await run.enqueue('review', gate.held)
    const waiting = [await run.enqueue('review'), await run.enqueue('keyed'), await run.enqueue('none')]
    const worker = await run.worker('worker-a', { options: { concurrency: 1, prefetch: 2 } })
    await run.line('run.begin', ({ job }) => job === held)
    await worker.kill('with a full buffer')
    gate.open()
    await finish(run)
    expect(await run.job(held)).toMatchObject({ state: 'dead', reason: 'Interrupted', inDoubt: true })
    for (const id of waiting) expect((await run.job(id)).state).toBe('completed')
  })

  test('K6 in the handler, before its effect: it runs again, and the history shows the crash', async (context) => {
    const run = await open(context)
    const ledger = await run.enqueue('ledger', { do: 'kill-before', times: 1 })
    const worker = await run.worker('worker-a')
    expect((await worker.ended).signal).toBe('SIGKILL')
    await finish(run)
    const job = await run.job(ledger)
    expect(job).toMatchObject({ state: 'completed', attempt: 2 })
    expect(job.history).toContain('CHOKAQ_INTERRUPTED')
    expect(effectCount(run, ledger)).toBe(1)
  })

  test('K6 in a handler under review: it waits for a person, and its key stays held', async (context) => {
    const run = await open(context)
    const order = run.order('review', { key: 'k', do: 'kill-before', times: 1 })
    await run.producer('producer-a', [order])
    const worker = await run.worker('worker-a')
    expect((await worker.ended).signal).toBe('SIGKILL')
    await run.worker('worker-b')
    await run.drained()
    await run.producer('producer-b', [run.order('review', { key: 'k' })])
    const { markers } = await run.snapshot()
    expect(markers).toMatchObject([{ state: 'in_doubt', expiresAtMs: undefined }])
    expect(run.lines().flatMap((line) => (line.kind === 'enq.ok' ? [line.outcome] : []))).toEqual([
      'enqueued',
      'already-in-review',
    ])
    expect(await run.verdict()).toEqual([])
  })

  test.for(['handler-returned:1', 'settle-before-commit:1'])(
    'K7 K8 at %s, after the effect: it runs again, the duplicate that is promised',
    async (point, context) => {
      const run = await open(context)
      const id = await run.enqueue('ledger')
      await dieAt(run, point)
      await finish(run)
      expect(await run.job(id)).toMatchObject({ state: 'completed', attempt: 2 })
      expect(effectCount(run, id)).toBe(2)
    },
  )

  test('K7 after its effect, under a key: one marker, and no run after the completion', async (context) => {
    const run = await open(context)
    const id = await run.enqueue('keyed', { key: 'k', do: 'kill-after', times: 1 })
    const worker = await run.worker('worker-a')
    expect((await worker.ended).signal).toBe('SIGKILL')
    await run.worker('worker-b')
    await run.drained()
    const again = run.order('keyed', { key: 'k' })
    await run.producer('producer-a', [again])
    await run.drained()
    expect((await run.snapshot()).jobs.map((job) => job.id)).toEqual([id])
    expect(await run.verdict()).toEqual([])
  })

  test.for(['kill-in-transaction', 'kill-after-transaction'] as const)(
    'K7 K8 %s: rows written with the completion are there exactly once',
    async (deed, context) => {
      const run = await open(context)
      await run.chokaq.ready()
      await run.database.userRows()
      const id = await run.enqueue('tx', { do: deed, times: 1 })
      const worker = await run.worker('worker-a')
      expect((await worker.ended).signal).toBe('SIGKILL')
      const before = await run.job(id)
      expect(before.state).toBe(deed === 'kill-in-transaction' ? 'processing' : 'completed')
      await finish(run)
      expect((await run.snapshot()).userRows).toEqual([{ op: expect.any(String) as string, job: id }])
    },
  )

  test.for(['kill-in-transaction', 'kill-after-transaction', 'kill-before'] as const)(
    'K7 K20 %s: rows written in a transaction of the handler, with more work behind it, are there exactly once',
    async (deed, context) => {
      const run = await open(context)
      const id = await run.enqueue('step', { do: deed, times: 1 })
      const worker = await run.worker('worker-a')
      expect((await worker.ended).signal).toBe('SIGKILL')
      expect((await run.snapshot()).userRows).toHaveLength(deed === 'kill-in-transaction' ? 0 : 1)
      await finish(run)
      expect(await run.job(id)).toMatchObject({ state: 'completed', attempt: 2 })
      expect((await run.snapshot()).userRows).toEqual([{ op: expect.any(String) as string, job: id }])
    },
  )

  test.for(['ledger-before-commit:1', 'ledger-committed:1'])(
    'K20 a transaction of the handler, dead at %s: its rows are there exactly once',
    async (point, context) => {
      const run = await open(context)
      const id = await run.enqueue('step')
      await dieAt(run, point)
      expect((await run.snapshot()).userRows).toHaveLength(point.startsWith('ledger-committed') ? 1 : 0)
      await finish(run)
      expect((await run.snapshot()).userRows).toEqual([{ op: expect.any(String) as string, job: id }])
    },
  )

  test('K9 after the settle is committed: completed once, and not run again', async (context) => {
    const run = await open(context)
    const id = await run.enqueue('ledger')
    await dieAt(run, 'settle-committed:1')
    await finish(run)
    expect(await run.job(id)).toMatchObject({ state: 'completed', attempt: 1 })
    expect(effectCount(run, id)).toBe(1)
  })

  test('K9 a settle whose reply is lost is repeated, and is no second event', async (context) => {
    const run = await open(context)
    const ids = [await run.enqueue('none'), await run.enqueue('keyed'), await run.enqueue('parent', { children: 2 })]
    await run.worker('worker-a', {
      faults: ['settle-committed:1:lost', 'start-committed:1:lost', 'fetch-committed:2:lost'],
    })
    await run.drained()
    expect(run.lines().some((line) => line.kind === 'ack.ok' && line.repeated)).toBe(true)
    for (const id of ids) expect((await run.job(id)).state).toBe('completed')
    expect(await run.verdict()).toEqual([])
  })

  test.for(['claim-committed:1', 'start-committed:1', 'handler-returned:1', 'settle-before-commit:1'])(
    'K17 at %s, with a key that the worker computed: work goes on, and its duplicate never runs',
    async (point, context) => {
      const run = await open(context)
      await run.enqueue('raw', { key: 'k' }, { raw: true })
      await run.enqueue('raw', { key: 'k' }, { raw: true })
      await dieAt(run, point)
      await finish(run)
      const states = (await run.snapshot()).jobs.map(({ state }) => state)
      expect(states.sort()).toEqual(['completed', 'skipped'])
    },
  )

  test('K24 all processes die at once, twice: what was accepted is done, and nothing twice', async (context) => {
    const run = await open(context)
    for (const round of [1, 2]) {
      const names = ['a', 'b', 'c'].map((letter) => `worker-${round}${letter}`)
      const workers = await Promise.all(names.map((name) => run.worker(name)))
      const producer = run.stream(`producer-${round}`, round, 5)
      await run.line('run.end', ({ by }) => by.startsWith(`worker-${round}`))
      await Promise.all([...workers, producer].map((process) => process.kill('all at once')))
    }
    await finish(run)
  })
})
