// `npm run proof:crash -- --minutes 10 [--seed 1]`: random kills for as long as you like, one seed after the other, each
// judged by the checker of test/crash. Ends with 1 at the first violation, whose seed it prints.
import { chmodSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { randomRun, summary } from '../test/crash/random-run.ts'
import { crashStorages } from '../test/crash/storages.ts'
import { stopSharedServer } from '../test/postgres/server.ts'

const roundMs = 45_000

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})
const endMs = Date.now() + Number(values.minutes) * 60_000

/** Gives the number of kills; throws the violations of the first seed that has any. */
async function prove(serverFolder: string): Promise<number> {
  let kills = 0
  for (let seed = Number(values.seed); Date.now() < endMs; seed += 1) {
    for (const storage of crashStorages(serverFolder)) {
      const result = await randomRun(storage, seed, Math.min(roundMs, Math.max(5_000, endMs - Date.now())))
      kills += result.killCount
      console.log(`${storage.name}, ${summary(seed, result)}`)
      if (result.violations.length > 0) {
        throw new Error(`Violations with seed ${seed}:\n${result.violations.join('\n')}`)
      }
    }
  }
  return kills
}

const serverFolder = mkdtempSync(join(tmpdir(), 'chokaq-postgres-'))
// The server may run as another user than this process.
chmodSync(serverFolder, 0o755)
try {
  console.log(`No violation. ${await prove(serverFolder)} processes were killed.`)
} finally {
  await stopSharedServer(serverFolder)
}
