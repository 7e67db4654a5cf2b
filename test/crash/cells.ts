// What every cell of the crash matrix has in common: a fresh run per test, its end, and the count of its kills.
import { afterAll, beforeAll, vi, type TestContext } from 'vitest'
import { CrashRun } from './crash-run.ts'
import { buildPrograms, removePrograms } from './fixture-programs.ts'
import type { CrashDatabaseOptions, CrashStorage } from './storages.ts'

/** Real processes on a busy machine; each wait inside a test has a shorter deadline that says what was missing. */
const testTimeout = 60_000

/** Tests that mostly wait may do so side by side; more of them would starve each other on two cores. */
const maxConcurrency = 3

export type OpenRun = (
  context: Pick<TestContext, 'onTestFinished'>,
  options?: CrashDatabaseOptions,
) => Promise<CrashRun>

/** Called inside a describe block: gives what opens a run. Whatever is started on it ends with its test. */
export function crashRuns(storage: CrashStorage, part: string): OpenRun {
  vi.setConfig({ testTimeout, maxConcurrency })
  let killCount = 0
  beforeAll(buildPrograms)
  afterAll(() => {
    removePrograms()
    // The number that the matrix stands for; the watch over the console concerns stray output only.
    process.stdout.write(`crash matrix, ${part} on ${storage.name}: ${killCount} processes died violently\n`)
  })
  return async ({ onTestFinished }, options) => {
    const run = await CrashRun.open(storage, options)
    onTestFinished(async () => {
      killCount += run.killCount
      await run.close()
    })
    return run
  }
}
