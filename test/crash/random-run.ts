// Three workers, one producer, and somebody who kills them at random: the part that the test and the long proof share.
import { createSeededRandom } from '../../src/testing/seeded-random.ts'
import type { CrashProcess } from './crash-process.ts'
import { CrashRun } from './crash-run.ts'
import { recoveries } from './invariants/time.ts'
import { Evidence } from './evidence.ts'
import { buildPrograms, removePrograms } from './fixture-programs.ts'
import type { CrashStorage } from './storages.ts'
import { until } from './until.ts'

export interface RandomRunResult {
  readonly violations: readonly string[]
  readonly killCount: number
  readonly jobCount: number
  readonly runCount: number
  /** From a death to the return of a job, sorted. */
  readonly recoveryMs: readonly number[]
}

const minPauseMs = 150
const maxPauseMs = 900
const drainMs = 60_000

/** Points at which a fresh worker may be armed to die by itself, beside the kills from outside. */
const points = [
  'fetch-before-commit',
  'fetch-committed',
  'claim-committed',
  'start-committed',
  'handler-returned',
  'settle-before-commit',
  'settle-committed',
  'heartbeat-before-commit',
  'rescue-before-commit',
  'rescue-committed',
] as const

export async function randomRun(storage: CrashStorage, seed: number, durationMs: number): Promise<RandomRunResult> {
  await buildPrograms()
  const run = await CrashRun.open(storage)
  try {
    await shake(run, seed, durationMs)
    await quietTail(run)
    const violations = await run.verdict()
    const evidence = new Evidence(run.lines(), await run.snapshot())
    return {
      violations,
      killCount: run.killCount,
      jobCount: evidence.snapshot.jobs.length,
      runCount: evidence.runs.length,
      recoveryMs: recoveries(evidence)
        .map(({ tookMs }) => Math.round(tookMs))
        .sort((a, b) => a - b),
    }
  } finally {
    await run.close()
    removePrograms()
  }
}

async function shake(run: CrashRun, seed: number, durationMs: number): Promise<void> {
  const random = createSeededRandom(seed)
  const endMs = performance.now() + durationMs
  let count = 0
  const startWorker = (): CrashProcess => {
    count += 1
    const faults = random.chance(0.4) ? [`${random.pick(points)}:${random.int(1, 20)}`] : []
    return run.launch(`worker-${count}`, { faults, anonymous: random.chance(0.15) })
  }
  const startProducer = (): CrashProcess => {
    count += 1
    return run.stream(`producer-${count}`, random.int(1, 1_000_000), 8)
  }
  const workers = [startWorker(), startWorker(), startWorker()]
  let producer = startProducer()
  while (performance.now() < endMs) {
    const nextMs = performance.now() + random.int(minPauseMs, maxPauseMs)
    await until('the next kill', 2 * maxPauseMs, () => performance.now() >= nextMs)
    const place = random.int(0, 2)
    await workers[place]?.kill('at random')
    if (random.chance(0.2)) {
      await producer.kill('at random')
      producer = startProducer()
    }
    // Whoever died by itself meanwhile is replaced, too.
    for (const [i, worker] of workers.entries()) if (worker.ending !== undefined) workers[i] = startWorker()
  }
  await run.stop(producer)
}

/** No faults any more: everything is finished, and what comes now starts at once. */
async function quietTail(run: CrashRun): Promise<void> {
  await run.worker('worker-last', {})
  await run.drained(drainMs)
  run.history.write({ kind: 'quiet' })
  const probe = await run.enqueue('none')
  await run.place(probe, ({ state }) => state === 'completed')
}

export function summary(seed: number, { killCount, jobCount, runCount, recoveryMs }: RandomRunResult): string {
  const at = (share: number): number => recoveryMs[Math.floor(share * (recoveryMs.length - 1))] ?? 0
  return (
    `seed ${seed}: ${killCount} kills, ${jobCount} jobs, ${runCount} runs of handlers, ` +
    `recovery p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms`
  )
}
