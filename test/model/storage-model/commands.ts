// Each command does one thing to the real storage and to the model, and compares verdicts and every job afterwards.
import type fc from 'fast-check'
import { expect } from 'vitest'
import type { JobRecord, Pillar } from '../../../src/core/job.ts'
import { isTransition, type Place, type Verb } from '../../../src/core/lifecycle.ts'
import type { Lease } from '../../../src/core/lease.ts'
import type { SettleAction, StorageDriver } from '../../../src/core/storage.ts'
import { keyOf, newJob } from '../../../src/testing/conformance/new-job.ts'
import { placeOf } from '../../../src/testing/conformance/scene.ts'
import type { FakeRuntime } from '../../../src/testing/index.ts'
import { allPolicies, isHot, type Model, policies, type ModelJob, type ModelType } from './model.ts'

export interface Real {
  readonly driver: StorageDriver
  readonly runtime: FakeRuntime
  /** Every lease that was ever given out, stale ones included. */
  readonly leases: { readonly lease: Lease; readonly job: ModelJob }[]
}

export type Command = fc.AsyncCommand<Model, Real>

const by = { actor: 'model', note: '' }
export const workers = ['w1', 'w2'] as const

function command(text: string, verbs: readonly Verb[], run: (model: Model, real: Real) => Promise<void>): Command {
  return {
    check: () => true,
    toString: () => text,
    async run(model, real) {
      model.nowMs = real.runtime.clock.nowMs()
      const before = new Map(model.jobs.map((job) => [job.id, job.place]))
      await run(model, real)
      const records = await recordsOf(real.driver, ['hot'])
      for (const job of model.jobs) {
        const from: Place = before.get(job.id) ?? 'nowhere'
        if (from !== job.place) {
          expect(
            verbs.some((verb) => isTransition(verb, from, job.place)),
            `${text}: ${from} -> ${job.place}`,
          ).toBe(true)
        }
        // What ended before this command is looked at once more when the sequence is over.
        if (from === job.place && !isHot(job)) continue
        const record = records.get(job.id) ?? (await real.driver.inspector.get(job.id))
        expect(seen(record), `${text}: ${job.type} ${job.id}`).toEqual(wanted(job))
      }
      expect(records.size, text).toBe(model.jobs.filter(isHot).length)
    },
  }
}

/** At the end of a sequence: every job as the model has it, in one place only. */
export async function compareAll(model: Model, { driver }: Real): Promise<void> {
  const records = await recordsOf(driver, ['hot', 'archive', 'dlq'])
  expect(records.size).toBe(model.jobs.length)
  for (const job of model.jobs) expect(seen(records.get(job.id)), `${job.type} ${job.id}`).toEqual(wanted(job))
}

async function recordsOf(
  { inspector }: StorageDriver,
  pillars: readonly Pillar[],
): Promise<ReadonlyMap<string, JobRecord>> {
  const pages = pillars.map((pillar) => inspector.list({ pillar, filter: {}, limit: 500, cursor: undefined }))
  const jobs = (await Promise.all(pages)).flatMap((page) => page.jobs)
  const records = new Map(jobs.map((job) => [job.id, job]))
  expect(records.size).toBe(jobs.length)
  return records
}

/** What of a job is compared after every command. */
function seen(record: JobRecord | undefined): object {
  if (record === undefined) return { place: 'nowhere' }
  const { attempt, failureCount, crashCount, fetchCrashCount, generation, inDoubt, token, workerId, runAtMs } = record
  const counts = { attempt, failureCount, crashCount, fetchCrashCount, generation }
  const ending = { outcome: record.pillar === 'archive' ? record.state : undefined, reason: record.reason ?? undefined }
  const isHot = record.pillar === 'hot'
  return {
    ...counts,
    ...ending,
    place: placeOf(record),
    isKeyed: record.keyHash !== null,
    inDoubt,
    token,
    workerId: isHot ? (workerId ?? undefined) : undefined,
    runAtMs: isHot ? runAtMs : undefined,
  }
}

function wanted(job: ModelJob): object {
  const isHot = job.place !== 'archive' && job.place !== 'dlq'
  return {
    attempt: job.attempt,
    failureCount: job.failures,
    crashCount: job.crashes,
    fetchCrashCount: job.fetchCrashes,
    generation: job.generation,
    outcome: job.place === 'archive' ? job.outcome : undefined,
    reason: job.place === 'dlq' ? job.reason : undefined,
    place: job.place,
    isKeyed: job.key !== undefined,
    inDoubt: job.place === 'dlq' && job.inDoubt,
    token: job.token,
    workerId: isHot ? job.worker : undefined,
    runAtMs: isHot ? job.runAtMs : undefined,
  }
}

/** The tokens that somebody other than the owner raised, in one call: above all that were there, each its own. */
async function raised(real: Real, model: Model, jobs: readonly ModelJob[]): Promise<void> {
  const newest = Math.max(...model.jobs.map((each) => each.token))
  const tokens = await Promise.all(jobs.map(async ({ id }) => (await real.driver.inspector.get(id))?.token ?? 0))
  expect(new Set(tokens).size).toBe(jobs.length)
  for (const [i, job] of jobs.entries()) {
    const token = tokens[i] ?? 0
    expect(token).toBeGreaterThan(newest)
    job.token = token
  }
}

export function enqueue(type: ModelType, key: string, priority: number, delayMs: number): Command {
  return command(`enqueue ${type} ${key} in ${delayMs}`, ['enqueue'], async (model, { driver, runtime }) => {
    const isKeyed = policies[type].keyed && type !== 'raw'
    // The types share their keys, as the versions of one type do.
    const jobKey = isKeyed ? keyOf(runtime, key) : undefined
    const due = delayMs === 0 ? ({ kind: 'now' } as const) : ({ kind: 'in', delayMs } as const)
    const row = newJob(runtime, {
      type: policies[type].type,
      priority,
      due,
      key: jobKey,
      fingerprint: isKeyed ? 'f' : undefined,
    })
    const [verdict] = await driver.enqueue([row])
    const holder = isKeyed ? model.hotHolder(key) : undefined
    const marker = isKeyed ? model.markers.get(key) : undefined
    if (holder !== undefined) {
      const isReview = marker?.state === 'in_doubt' && marker.jobId === holder.id
      expect(verdict).toMatchObject({ kind: isReview ? 'in-review' : 'active', jobId: holder.id })
    } else if (marker !== undefined) {
      expect(verdict).toMatchObject({
        kind: marker.state === 'completed' ? 'completed' : 'in-review',
        jobId: marker.jobId,
      })
    } else {
      expect(verdict).toEqual({ kind: 'inserted' })
      model.jobs.push(fresh(row.id, type, priority, isKeyed ? key : undefined, model, delayMs))
    }
  })
}

function fresh(
  id: string,
  type: ModelType,
  priority: number,
  key: string | undefined,
  model: Model,
  delayMs: number,
): ModelJob {
  return {
    id,
    type,
    priority,
    key,
    place: delayMs === 0 ? 'pending' : 'scheduled',
    outcome: undefined,
    reason: undefined,
    token: 0,
    worker: undefined,
    fetchedAtMs: 0,
    keyComputed: false,
    runAtMs: model.nowMs + delayMs,
    generation: key === undefined ? 1 : model.generationOf(key),
    attempt: 0,
    failures: 0,
    crashes: 0,
    fetchCrashes: 0,
    suspect: false,
    fastStarted: false,
    cancelRequested: false,
    inDoubt: false,
  }
}

export function fetch(worker: string, limit: number): Command {
  return command(`fetch ${limit} by ${worker}`, ['fetch'], async (model, { driver, leases }) => {
    const fetched = await driver.fetch({ workerId: worker, queue: 'default', limit, policies: allPolicies })
    const expected = model.fetchOrder(limit)
    expect(fetched.map(({ lease }) => lease.jobId)).toEqual(expected.map(({ id }) => id))
    // Above all there were; among themselves they differ, in no promised order.
    const newest = Math.max(0, ...model.jobs.map(({ token }) => token))
    expect(new Set(fetched.map(({ lease }) => lease.token)).size).toBe(fetched.length)
    fetched.forEach(({ lease, state, attempt, suspect }, i) => {
      const job = expected[i] as ModelJob
      expect(lease.token).toBeGreaterThan(newest)
      model.fetch(job, worker, lease.token)
      expect({ state, attempt, suspect }).toEqual({ state: job.place, attempt: job.attempt, suspect: job.suspect })
      leases.push({ lease, job })
    })
  })
}

/** Something with a lease that was given out at some time, and may be stale by now. */
function withLease(
  text: string,
  verbs: readonly Verb[],
  at: number,
  run: (lease: Lease, job: ModelJob, isValid: boolean, model: Model, real: Real) => Promise<void>,
): Command {
  return command(text, verbs, async (model, real) => {
    const given = real.leases[real.leases.length - 1 - (at % Math.max(1, real.leases.length))]
    if (given === undefined) return
    const { lease, job } = given
    await run(lease, job, job.token === lease.token && model.owned(job), model, real)
  })
}

export function claim(at: number, key: string): Command {
  return withLease(`claim ${key}`, ['claim'], at, async (lease, job, isValid, model, { driver, runtime }) => {
    if (job.type !== 'raw') return
    const [verdict] = await driver.claim([{ lease, key: keyOf(runtime, key), fingerprint: 'f' }])
    if (!isValid || job.place !== 'fetched') expect(verdict).toEqual({ kind: 'lost' })
    else if (job.key !== undefined) expect(verdict).toEqual({ kind: 'claimed' })
    else {
      const holder = model.hotHolder(key)
      if (holder !== undefined) expect(verdict).toEqual({ kind: 'held', jobId: holder.id, sameFingerprint: true })
      else {
        expect(verdict).toEqual({ kind: 'claimed' })
        Object.assign(job, { key, keyComputed: true })
      }
    }
  })
}

export function start(at: number): Command {
  return withLease('start', ['start'], at, async (lease, job, isValid, model, { driver }) => {
    const [verdict] = await driver.start([{ lease, policy: policies[job.type] }])
    const expected = isValid ? model.startVerdict(job) : 'lost'
    expect(verdict?.kind).toBe(expected)
    if (expected !== 'started') return
    model.start(job)
    expect(verdict).toMatchObject({ attempt: job.attempt })
  })
}

const settleVerbs = ['complete', 'retry', 'bury', 'skip', 'defer', 'cancel', 'release'] as const

export function settle(at: number, action: SettleAction): Command {
  const text = `settle ${action.kind} ${JSON.stringify({ ...action, failure: undefined })}`
  return withLease(text, settleVerbs, at, async (lease, job, isValid, model, { driver }) => {
    const [verdict] = await driver.settle([{ lease, action }])
    if (isValid && (action.kind !== 'complete' || job.place === 'processing')) {
      const outcome = model.settle(job, action)
      expect(verdict).toEqual({ kind: 'settled', outcome, repeated: false })
    } else if (job.token === lease.token && !model.owned(job)) {
      expect(verdict).toEqual({ kind: 'settled', outcome: told(job, action), repeated: true })
    } else expect(verdict).toEqual({ kind: 'lost' })
  })
}

/** What a repeated settle hears of the one that went before. */
function told(job: ModelJob, action: SettleAction): string | undefined {
  if (job.place === 'archive') return job.outcome
  if (job.place === 'dlq') return job.reason === 'CompleteConflict' ? 'conflict' : 'dead'
  if (action.kind === 'defer') return 'deferred'
  return action.kind === 'release' ? 'released' : 'retried'
}

export function crash(worker: string): Command {
  return command(`crash of ${worker}`, ['rescue'], async (model, real) => {
    const { driver } = real
    const rescued = await driver.rescue({ deadWorkerIds: [worker], provenDeadIds: [], limit: 100 })
    const lost = model.jobs.filter((job) => job.worker === worker).sort((a, b) => (a.id < b.id ? -1 : 1))
    expect(rescued.map(({ jobId }) => jobId)).toEqual(lost.map(({ id }) => id))
    for (const [i, job] of lost.entries()) {
      const crashed = job.place === 'processing'
      expect(rescued[i]).toMatchObject({ went: model.rescue(job), crashed })
    }
    await raised(
      real,
      model,
      lost.filter(({ place }) => place === 'pending'),
    )
    await driver.registerWorker({ id: worker, name: worker, identity, queues: [], types: [], concurrency: 1 })
  })
}

const identity = { host: 'h', bootId: undefined, pidNamespace: undefined, pid: 1, startTime: undefined }

export function disown(worker: string): Command {
  return command(`disown by ${worker}`, ['disown'], async (model, real) => {
    const count = await real.driver.disown({ workerId: worker, inHand: [], fetchedBeforeMs: model.nowMs - 1_000 })
    const lost = model.jobs.filter((job) => job.worker === worker && job.fetchedAtMs < model.nowMs - 1_000)
    expect(count).toBe(lost.length)
    for (const job of lost) model.giveBack(job)
    await raised(real, model, lost)
  })
}

export function advance(ms: number): Command {
  return command(`advance ${ms}`, [], (_model, { runtime }) => runtime.advance(ms))
}

export const promote = command('promote', ['promote'], async (model, { driver }) => {
  const { promotedCount, nextDueInMs } = await driver.promote({ limit: 1_000 })
  const due = model.jobs.filter((job) => job.place === 'scheduled' && job.runAtMs <= model.nowMs)
  for (const job of due) job.place = 'pending'
  const waiting = model.jobs.flatMap((job) => (job.place === 'scheduled' ? [job.runAtMs - model.nowMs] : []))
  expect(promotedCount).toBe(due.length)
  expect(nextDueInMs).toBe(waiting.length === 0 ? undefined : Math.min(...waiting))
})

export function setPaused(paused: boolean): Command {
  return command(paused ? 'pause' : 'resume', [], async (model, { driver }) => {
    await driver.inspector.setQueue({ name: 'default', paused }, by)
    model.isPaused = paused
  })
}

function withJob(
  text: string,
  verbs: readonly Verb[],
  at: number,
  run: (job: ModelJob, model: Model, real: Real) => Promise<void>,
): Command {
  return command(text, verbs, async (model, real) => {
    const job = model.jobs[at % Math.max(1, model.jobs.length)]
    if (job !== undefined) await run(job, model, real)
  })
}

export function cancel(at: number): Command {
  return withJob('cancel', ['cancel'], at, async (job, model, real) => {
    const verdict = await real.driver.inspector.cancel(job.id, by)
    if (job.place === 'archive') expect(verdict).toEqual({ kind: 'finished', state: job.outcome })
    else if (job.place === 'dlq') expect(verdict).toEqual({ kind: 'finished', state: 'dead' })
    else if (model.owned(job)) {
      expect(verdict).toEqual({ kind: 'requested' })
      job.cancelRequested = true
    } else {
      expect(verdict).toEqual({ kind: 'cancelled' })
      model.cancelWaiting(job)
      await raised(real, model, [job])
    }
  })
}

export function resurrect(at: number, mode: 'continue' | 'new-operation', isStated: boolean): Command {
  const absence = isStated ? { statement: 'it is not there', settleAfterMs: 0 } : undefined
  return withJob(
    `resurrect ${mode}${isStated ? ', stated absent' : ''}`,
    ['resurrect'],
    at,
    async (job, model, real) => {
      const request = { jobId: job.id, mode, payload: undefined, key: undefined, revision: undefined, absence }
      const verdict = await real.driver.inspector.resurrect(request, by, undefined)
      const obstacle = model.obstacle(job, mode, isStated)
      if (obstacle !== undefined) expect(verdict.kind).toBe(obstacle)
      else {
        model.resurrect(job, mode)
        expect(verdict).toEqual({ kind: 'resurrected', generation: job.generation })
        await raised(real, model, [job])
      }
    },
  )
}

export async function register(driver: StorageDriver): Promise<void> {
  for (const id of workers) {
    await driver.registerWorker({ id, name: id, identity, queues: [], types: [], concurrency: 1 })
  }
}
