import { describe, expect, test } from 'vitest'
import { createFakeRuntime } from '../testing/fake-runtime.ts'
import { Batcher } from './batcher.ts'

function batcherOf(run: (items: readonly number[]) => Promise<readonly string[]>, maxBatchCount = 100) {
  const runtime = createFakeRuntime()
  const batches: number[][] = []
  const batcher = new Batcher<number, string>({
    scheduler: runtime.scheduler,
    maxBatchCount,
    run(items) {
      batches.push([...items])
      return run(items)
    },
  })
  return { batcher, batches, runtime }
}

const named = (items: readonly number[]): Promise<string[]> => Promise.resolve(items.map((item) => `n${item}`))

describe('Batcher', () => {
  test('joins what is ready in one tick, and answers each its own', async () => {
    const { batcher, batches } = batcherOf(named)
    expect(await Promise.all([1, 2, 3].map((item) => batcher.submit(item)))).toEqual(['n1', 'n2', 'n3'])
    expect(batches).toEqual([[1, 2, 3]])
    expect(await batcher.submit(4)).toBe('n4')
    expect(batches).toEqual([[1, 2, 3], [4]])
  })

  test('runs one batch at a time; what comes meanwhile goes together', async () => {
    let go: () => void = () => undefined
    const first = new Promise<void>((resolve) => (go = resolve))
    const { batcher, batches, runtime } = batcherOf(async (items) => {
      if (items.includes(1)) await first
      return named(items)
    })
    const all = [batcher.submit(1)]
    await runtime.settle()
    all.push(batcher.submit(2), batcher.submit(3))
    await runtime.settle()
    expect(batches).toEqual([[1]])
    go()
    expect(await Promise.all(all)).toEqual(['n1', 'n2', 'n3'])
    expect(batches).toEqual([[1], [2, 3]])
  })

  test('splits at the largest size', async () => {
    const { batcher, batches } = batcherOf(named, 2)
    await Promise.all([1, 2, 3, 4, 5].map((item) => batcher.submit(item)))
    expect(batches).toEqual([[1, 2], [3, 4], [5]])
  })

  test('a failure is that of its batch alone', async () => {
    const { batcher } = batcherOf((items) => (items.includes(1) ? Promise.reject(new Error('no')) : named(items)), 1)
    const answers = await Promise.allSettled([batcher.submit(1), batcher.submit(2)])
    expect(answers.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
    expect(await batcher.submit(3)).toBe('n3')
  })

  test('too few answers are a bug that is told, not a wrong answer', async () => {
    const { batcher } = batcherOf(() => Promise.resolve(['n1']))
    const answers = await Promise.allSettled([batcher.submit(1), batcher.submit(2)])
    expect(answers).toMatchObject([
      { status: 'rejected', reason: { code: 'CHOKAQ_ASSERTION' } },
      { status: 'rejected', reason: { code: 'CHOKAQ_ASSERTION' } },
    ])
  })
})
