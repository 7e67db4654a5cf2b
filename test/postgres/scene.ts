// A storage on a real server in real time, and the few steps that these tests do to it.
import { postgres, type PostgresOptions } from 'chokaq/postgres'
import { createNodeRuntime } from '../../src/engine/node-runtime.ts'
import type { FetchedJob } from '../../src/core/job.ts'
import type { Runtime } from '../../src/core/runtime.ts'
import type { StorageDriver } from '../../src/core/storage.ts'
import { complete } from '../../src/testing/conformance/actions.ts'
import { newJob, policy } from '../../src/testing/conformance/new-job.ts'

export const runtime: Runtime = createNodeRuntime()
export const fast = policy({ fastStart: true })
/** Who waits for a lock waits longer than the other side keeps it, however busy the machine is. */
export const patient = { lockTimeoutMs: 5_000 } as const satisfies PostgresOptions

export function open(target: Parameters<typeof postgres>[0], options: PostgresOptions = {}): StorageDriver {
  return postgres(target, options).open(runtime)
}

export async function register(driver: StorageDriver, id = 'w'): Promise<void> {
  const identity = runtime.processes.self()
  await driver.registerWorker({ id, name: id, identity, queues: ['default'], types: [fast.type], concurrency: 1 })
}

export function beat(driver: StorageDriver, workerId = 'w'): ReturnType<StorageDriver['heartbeat']> {
  return driver.heartbeat({ workerId, concurrency: 1, runningCount: 0, bufferedCount: 0 })
}

export function fetchAll(driver: StorageDriver, workerId = 'w'): Promise<readonly FetchedJob[]> {
  return driver.fetch({ workerId, queue: 'default', limit: 100, policies: [fast] })
}

/** One job from its enqueue to its end; the outcome. */
export async function roundTrip(driver: StorageDriver): Promise<string> {
  await driver.enqueue([newJob(runtime)])
  const jobs = await fetchAll(driver)
  const verdicts = await driver.settle(jobs.map(({ lease }) => ({ lease, action: complete() })))
  const [verdict] = verdicts
  return verdict?.kind === 'settled' ? verdict.outcome : (verdict?.kind ?? 'nothing')
}

/** 'accepted', or the code of the refusal. */
export async function codeOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'accepted',
    (error: unknown) => (error as { readonly code?: string }).code ?? String(error),
  )
}
