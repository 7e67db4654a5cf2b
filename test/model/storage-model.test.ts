// Random sequences of everything a storage can be asked for, against a model of the lifecycle. A failure prints the
// seed, the path and the shrunk sequence; CHOKAQ_MODEL_RUNS makes it run longer: npm run proof:model.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createFakeRuntime } from '../../src/testing/index.ts'
import { sqliteInMemory } from '../engine/sqlite-storage.ts'
import { anyCommands, register, type Real } from './storage-model/commands.ts'
import { Model } from './storage-model/model.ts'

const storages = [sqliteInMemory]
const runCount = Number(process.env['CHOKAQ_MODEL_RUNS'] ?? 200)
const commandCount = 150

describe.each(storages)('the storage on $name', (kind) => {
  test(`does what the model of the lifecycle says, in ${runCount} random sequences`, async () => {
    const met = new Set<string>()
    const sequences = fc.commands([...anyCommands], { maxCommands: commandCount, size: 'max' })
    await fc.assert(
      fc.asyncProperty(sequences, async (sequence) => {
        const opened = kind.open()
        const runtime = createFakeRuntime()
        const driver = opened.storage.open(runtime)
        try {
          await register(driver)
          const real: Real = { driver, runtime, leases: [] }
          const model = new Model()
          await fc.asyncModelRun(() => ({ model, real }), sequence)
          for (const job of model.jobs) met.add(job.reason ?? job.outcome ?? job.place)
        } finally {
          await driver.close()
          opened.remove()
        }
      }),
      { numRuns: runCount, endOnFailure: false },
    )
    // The sequences are long enough to end jobs in every way there is.
    for (const end of [
      'completed',
      'cancelled',
      'skipped',
      'Interrupted',
      'InDoubt',
      'FatalError',
      'ReviewRequested',
    ]) {
      expect(met, end).toContain(end)
    }
  }, 600_000)
})
