// What every cell of the crash matrix has in common: a fresh run per test, its end, and the count of its kills.
import { afterAll, afterEach } from 'vitest'
import { CrashRun } from './crash-run.ts'
import type { CrashStorage } from './storages.ts'

/** Called inside a describe block: gives what opens a run. Whatever is started on it ends with its test. */
export function crashRuns(storage: CrashStorage, part: string): () => CrashRun {
  let runs: CrashRun[] = []
  let killCount = 0
  afterEach(async () => {
    const ended = runs
    runs = []
    for (const run of ended) {
      killCount += run.killCount
      await run.close()
    }
  })
  afterAll(() => {
    // The number that the matrix stands for; the watch over the console concerns stray output only.
    process.stdout.write(`crash matrix, ${part} on ${storage.name}: ${killCount} processes died violently\n`)
  })
  return () => {
    const run = new CrashRun(storage)
    runs.push(run)
    return run
  }
}
