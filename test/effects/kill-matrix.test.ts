// A part of the kill matrix that fits into every run; all of it by `npm run proof:effects`.
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { buildPrograms, removePrograms } from '../crash/fixture-programs.ts'
import { mailCount, mails, modes, points } from './fixtures/two-effects.ts'
import { allCells, EffectRun, nameOf, runCell, scenarios, type Cell } from './kill-matrix.ts'
import { effectStorages } from './storages.ts'

// More of them side by side would starve each other's leases on two cores.
vi.setConfig({ maxConcurrency: 3 })
beforeAll(buildPrograms)
afterAll(removePrograms)

/** Each boundary, each way to settle a doubt and each scenario at least twice. */
const representative: readonly Cell[] = [
  { point: 'before-intent', what: 'b', mode: 'neither', scenario: 'one crash' },
  { point: 'after-intent', what: 'a', mode: 'reconcile', scenario: 'one crash' },
  { point: 'in-call', what: 'b', mode: 'reconcile', scenario: 'old owner wakes' },
  { point: 'in-call', what: 'a', mode: 'key', scenario: 'old owner wakes' },
  { point: 'acted', what: 'b', mode: 'key', scenario: 'two crashes' },
  { point: 'acted', what: 'a', mode: 'neither', scenario: 'one crash' },
  { point: 'before-outcome', what: 'b', mode: 'reconcile', scenario: 'two crashes' },
  { point: 'before-settle', what: 'b', mode: 'neither', scenario: 'old owner wakes' },
  { point: 'after-settle', what: 'b', mode: 'key', scenario: 'one crash' },
]

/** What may differ on a server: it keeps what a connection left behind, and ends the transaction of one who stands still. */
const onServer: readonly Cell[] = [
  { point: 'before-intent', what: 'b', mode: 'key', scenario: 'old owner wakes' },
  { point: 'in-call', what: 'b', mode: 'reconcile', scenario: 'old owner wakes' },
  { point: 'acted', what: 'b', mode: 'key', scenario: 'two crashes' },
  { point: 'before-outcome', what: 'a', mode: 'neither', scenario: 'one crash' },
  { point: 'in-outcome', what: 'b', mode: 'reconcile', scenario: 'old owner wakes' },
]

const runs = effectStorages().map((storage) => ({
  name: storage.name,
  storage,
  cells: storage.name === 'SQLite' ? representative : onServer,
}))

test('the matrix has every boundary of both effects, every way to settle and every scenario', () => {
  const cells = allCells()
  expect(new Set(cells.map(nameOf)).size).toBe(cells.length)
  expect(cells).toHaveLength((2 * points.length - 2) * modes.length * scenarios.length)
})

describe.each(runs)('the kill matrix on $name', ({ storage, cells }) => {
  test.concurrent.each(cells.map((cell) => [nameOf(cell), cell] as const))(
    '%s: it acted once, or a person is asked',
    async (_name, cell) => {
      const result = await runCell(storage, cell)
      expect(result.broken).toBe('')
    },
    120_000,
  )

  test.concurrent(
    'E22 a real SIGKILL in mail 237 of 500: it resumes there, and each is sent once',
    async () => {
      const run = new EffectRun(await storage.create())
      try {
        const id = await run.enqueue(mails)
        const first = run.worker('key', { point: 'acted', what: 'mail-237', how: 'kill' })
        const second = run.worker('key', undefined, true)
        await first.ended
        expect([run.acts('mail-237'), run.acts('mail-238')]).toEqual([1, 0])
        second.begin()
        expect(await run.over(id)).toBe('completed')
        const sent = Array.from({ length: mailCount }, (_, index) => run.acts(`mail-${index}`))
        expect(sent).toEqual(sent.map(() => 1))
        await second.stop()
      } finally {
        await run.close()
      }
    },
    120_000,
  )
})
