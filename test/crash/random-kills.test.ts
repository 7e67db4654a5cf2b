// Kills at random moments, judged by the checker. A failure prints its seed; the same seed sends the same orders and picks
// the same victims, though not at the same instants. `npm run proof:crash -- --minutes 10` goes on for longer.
import { expect, test } from 'vitest'
import { randomRun, summary } from './random-run.ts'
import { crashStorages } from './storages.ts'

const durationMs = 9_000
const seed = Date.now() % 1_000_000

test.each(crashStorages())(
  'three workers and a producer are killed at random on $name, and every invariant holds',
  async (storage) => {
    const result = await randomRun(storage, seed, durationMs)
    process.stdout.write(`random kills on ${storage.name}, ${summary(seed, result)}\n`)
    expect(result.violations, `seed ${seed}`).toEqual([])
    expect(result.killCount).toBeGreaterThan(5)
  },
  120_000,
)
