// Twenty seeds of the simulated system; `npm run proof:simulator -- --seeds 1000` runs more. A failure names its seed:
// simulate(seed) repeats it exactly.
import { describe, expect, test } from 'vitest'
import { violations } from './simulator/invariants.ts'
import { simulate } from './simulator/simulate.ts'

const seeds = Array.from({ length: 20 }, (_, i) => i + 1)

describe('the simulated system', () => {
  test.each(seeds)('keeps every invariant under seed %i', async (seed) => {
    const simulation = await simulate(seed)
    expect(violations(simulation), `seed ${seed}`).toEqual([])
  })

  test('is not idle: jobs end in every way, and workers die', async () => {
    const all = await Promise.all([1, 2, 3].map(simulate))
    const states = new Set(all.flatMap(({ rows }) => rows.map(({ state, reason }) => reason ?? state)))
    for (const state of ['completed', 'cancelled', 'MaxRetriesExceeded', 'FatalError', 'Interrupted']) {
      expect(states, state).toContain(state)
    }
    const kinds = new Set(all.flatMap(({ history }) => history.entries.map(({ kind }) => kind)))
    for (const kind of ['rescue', 'start', 'pause', 'freeze', 'kill'] as const) expect(kinds, kind).toContain(kind)
    expect(all.every(({ deathCount }) => deathCount >= 3)).toBe(true)
  })

  test('repeats a seed exactly', async () => {
    // Stacks depend on what the runtime has compiled by then.
    const told = async (): Promise<string> =>
      JSON.stringify((await simulate(7)).history.entries, (name, value: unknown) => (name === 'stack' ? 0 : value))
    expect(await told()).toBe(await told())
  })
})
