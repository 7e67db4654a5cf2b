// What is done while its connection is cut, and what must be true afterwards: nothing is lost, nothing is doubled, and
// the caller gets an answer that docs/errors.md has.
import { expect } from 'vitest'
import { hasCode } from '../../src/core/errors.ts'
import { defineJob } from '../../src/core/contract.ts'
import type { SettleAction } from '../../src/core/storage.ts'
import { bury, cancel, complete, defer, release, retry, skip } from '../../src/testing/conformance/actions.ts'
import { keyedJob, keyedPolicy, keyOf, newJob, policy } from '../../src/testing/conformance/new-job.ts'
import type { Act, Stage } from './cut-stage.ts'
import { upkeepActs } from './cut-upkeep-acts.ts'
import { runtime } from './scene.ts'

const mail = policy({ fastStart: true })
const gated = policy()
const capture = keyedPolicy()
const review = keyedPolicy({ whenInterrupted: 'review' })

const note = defineJob({ type: 'cut.note.v1', payload: anything() })
const noteWithKey = defineJob({
  type: 'cut.keyed.v1',
  payload: anything(),
  key: ({ op }: { op: string }) => op,
  duplicateWindow: '1d',
})

function anything() {
  return {
    '~standard': {
      version: 1,
      vendor: 'chokaq-tests',
      validate: (value: unknown) => ({ value: value as { op: string } }),
      types: undefined as { readonly input: { op: string }; readonly output: { op: string } } | undefined,
    },
  } as const
}

const withOp = `payload ->> 'op' = $1`

// ---- enqueue

function enqueueing(name: string, job: typeof note | typeof noteWithKey): Act {
  return {
    name,
    async run(stage) {
      const op = `${name} ${stage.queue}`
      const chokaq = stage.client(stage.cut.thenDown === true ? 300 : 5_000)
      await stage.again(() => chokaq.ready())
      stage.arm()
      const answer = await chokaq.enqueue(job, { op }, { queue: stage.queue }).catch((error: unknown) => error)
      if (answer instanceof Error) {
        // Nobody knows; its own word says how to repeat it, and that makes exactly one.
        if (!hasCode(answer, 'CHOKAQ_ENQUEUE_UNKNOWN')) throw answer
        expect(stage.cut.thenDown, 'one lost connection is no reason to give up').toBe(true)
        stage.proxy.disarm()
        const { id } = answer.details
        const patient = stage.client(5_000)
        await stage.again(() => patient.ready())
        const again = await patient.enqueue(job, { op }, { queue: stage.queue, id })
        expect(again).toMatchObject({ id })
      }
      expect(await stage.copies(withOp, op)).toBe(1)
      // The job is over and archived before a late request arrives.
      const policyOf = policy({
        type: job === note ? 'cut.note.v1' : 'cut.keyed.v1',
        keyed: job !== note,
        fastStart: true,
      })
      const fetched = await stage.fetchOne(policyOf)
      expect(await stage.direct.settle([{ lease: fetched.lease, action: complete() }])).toMatchObject([
        { outcome: 'completed' },
      ])
      await stage.over()
      expect(await stage.copies(withOp, op)).toBe(1)
      expect(await stage.fetch(policyOf)).toEqual([])
    },
  }
}

const enqueueMany: Act = {
  name: 'enqueueMany, two of three with one key',
  async run(stage) {
    const chokaq = stage.client(5_000)
    await stage.again(() => chokaq.ready())
    stage.arm()
    const ops = [`${stage.queue} a`, `${stage.queue} b`, `${stage.queue} a`].map((op) => ({ op }))
    const answers = await chokaq.enqueueMany(noteWithKey, ops, { queue: stage.queue })
    await stage.over()
    for (const { op } of ops) expect(await stage.copies(withOp, op)).toBe(1)
    expect(answers.map((answer) => answer.outcome).sort()).toEqual(['already-active', 'enqueued', 'enqueued'])
  },
}

const enqueueInTransaction: Act = {
  name: "enqueue in the caller's transaction",
  async run(stage) {
    const chokaq = stage.client(5_000)
    await stage.again(() => chokaq.ready())
    const op = `tx ${stage.queue}`
    stage.arm()
    const knows = await stage.inTransaction(async (client) => {
      await client.query('INSERT INTO public.app_rows (note) VALUES ($1)', [op])
      await chokaq.enqueue(note, { op }, { queue: stage.queue, tx: client })
    })
    await stage.over()
    const rows = await stage.userRows(op)
    expect(await stage.copies(withOp, op), 'the job is there if and only if the row is').toBe(rows)
    expect([0, 1]).toContain(rows)
    if (knows === 'committed') expect(rows).toBe(1)
  },
}

// ---- fetch, claim, start

const fetch: Act = {
  name: 'fetch',
  async run(stage) {
    const { id } = await stage.add({ type: mail.type })
    await stage.register()
    stage.arm()
    const first = await stage.fetch(mail, stage.proxied).catch(() => undefined)
    // What a heart does with rows that its process does not know.
    if (first === undefined) {
      const beat = await stage.beat(stage.direct)
      if (beat.kind !== 'alive') throw new Error('the worker is unknown')
      await stage.direct.disown({ workerId: stage.worker, inHand: [], fetchedBeforeMs: beat.atMs + 1 })
      await stage.register(stage.direct, 'another')
      const second = await stage.fetch(mail, stage.direct, 'another')
      expect(second.map(({ lease }) => lease.jobId)).toEqual([id])
      await stage.over()
      expect(await stage.record(id)).toMatchObject({ state: 'processing', workerId: 'another' })
    } else {
      await stage.over()
      expect(first.map(({ lease }) => lease.jobId)).toEqual([id])
    }
    const owned = await stage.record(id)
    expect(owned).toMatchObject({ attempt: 1, crashCount: 0, fetchCrashCount: 0 })
    const lease = { jobId: id, token: owned?.token ?? 0 }
    expect(await stage.direct.settle([{ lease, action: complete() }])).toMatchObject([{ outcome: 'completed' }])
    expect(await stage.copies('id = $1', id)).toBe(1)
  },
}

const claim: Act = {
  name: 'claim',
  async run(stage) {
    await stage.add({ type: capture.type })
    await stage.register()
    const job = await stage.fetchOne(capture)
    const request = { lease: job.lease, key: keyOf(runtime, stage.queue), fingerprint: 'f' }
    stage.arm()
    const verdict = await stage.again(() => stage.proxied.claim([request]))
    await stage.over()
    expect(verdict).toEqual([{ kind: 'claimed' }])
    expect(await stage.record(job.lease.jobId)).toMatchObject({
      keyHash: request.key.hash,
      state: 'fetched',
      attempt: 0,
    })
  },
}

const start: Act = {
  name: 'start',
  async run(stage) {
    await stage.add({ type: gated.type })
    await stage.register()
    const job = await stage.fetchOne(gated)
    stage.arm()
    const verdict = await stage.again(() => stage.proxied.start([{ lease: job.lease, policy: gated }]))
    await stage.over()
    expect(verdict).toMatchObject([{ kind: 'started', attempt: 1 }])
    expect(await stage.record(job.lease.jobId)).toMatchObject({ state: 'processing', attempt: 1 })
  },
}

// ---- settle

interface Ending {
  readonly action: (stage: Stage) => SettleAction
  readonly outcome: string
  readonly counter: string
  readonly stored: object
}

const endings: Readonly<Record<string, Ending>> = {
  complete: {
    action: () => complete(),
    outcome: 'completed',
    counter: 'jobs.completed',
    stored: { state: 'completed' },
  },
  'complete with children': {
    action: (stage) =>
      complete({
        children: ['a', 'b'].map((child) => newJob(runtime, { queue: stage.queue, type: `child.${child}` })),
      }),
    outcome: 'completed',
    counter: 'jobs.completed',
    stored: { state: 'completed' },
  },
  retry: {
    action: () => retry({ delayMs: 60_000 }),
    outcome: 'retried',
    counter: 'jobs.retried',
    stored: { state: 'scheduled', failureCount: 1 },
  },
  bury: {
    action: () => bury({ hold: true, reason: 'ReviewRequested' }),
    outcome: 'dead',
    counter: 'jobs.dlq',
    stored: { state: 'dead', reason: 'ReviewRequested', failureCount: 1 },
  },
  skip: {
    action: () => skip(runtime.newId()),
    outcome: 'skipped',
    counter: 'jobs.skipped',
    stored: { state: 'skipped' },
  },
  defer: {
    action: () => defer(),
    outcome: 'deferred',
    counter: 'jobs.deferred',
    stored: { state: 'scheduled', failureCount: 0 },
  },
  cancel: {
    action: () => cancel(),
    outcome: 'cancelled',
    counter: 'jobs.cancelled',
    stored: { state: 'cancelled' },
  },
}

function settling([name, ending]: readonly [string, Ending]): Act {
  return {
    name: `settle: ${name}`,
    async run(stage) {
      await stage.register()
      const { id } = keyedJob(runtime, stage.queue)
      const job = await stage.running(review, { ...keyedJob(runtime, stage.queue), id, queue: stage.queue })
      const action = ending.action(stage)
      stage.arm()
      const [verdict] = await stage.again(() => stage.proxied.settle([{ lease: job.lease, action }]))
      await stage.over()
      expect(verdict).toMatchObject({ kind: 'settled', outcome: ending.outcome })
      expect(await stage.record(id)).toMatchObject({ ...ending.stored, attempt: 1 })
      expect(await stage.copies('id = $1', id)).toBe(1)
      expect(await stage.counted(ending.counter), ending.counter).toBe(1)
      const children = action.kind === 'complete' ? action.children.length : 0
      expect(await stage.copies('parent_id IS NULL AND queue = $1 AND type LIKE $2', stage.queue, 'child%')).toBe(
        children,
      )
    },
  }
}

const releasing: Act = {
  name: 'settle: release',
  async run(stage) {
    await stage.register()
    const { id } = await stage.add({ type: gated.type })
    const job = await stage.fetchOne(gated)
    stage.arm()
    const [verdict] = await stage.again(() => stage.proxied.settle([{ lease: job.lease, action: release }]))
    await stage.over()
    expect(verdict).toMatchObject({ kind: 'settled', outcome: 'released' })
    expect(await stage.record(id)).toMatchObject({ state: 'pending', attempt: 0 })
  },
}

export const enqueues: readonly Act[] = [enqueueing('enqueue', note), enqueueing('enqueue with a key', noteWithKey)]
export const acts: readonly Act[] = [
  ...enqueues,
  enqueueMany,
  enqueueInTransaction,
  fetch,
  claim,
  start,
  ...Object.entries(endings).map(settling),
  releasing,
  ...upkeepActs,
]
