// The second half of what is done while its connection is cut: liveness, upkeep, the ledger and transactions of handlers.
import { expect } from 'vitest'
import type { LedgerRequest, LedgerVerdict } from '../../src/core/ledger.ts'
import { bury, complete } from '../../src/testing/conformance/actions.ts'
import { day, keyedJob, keyedPolicy, minute, policy } from '../../src/testing/conformance/new-job.ts'
import type { Act, Stage } from './cut-stage.ts'
import { runtime } from './scene.ts'

const mail = policy({ fastStart: true })
const gated = policy()
const capture = keyedPolicy()

// ---- liveness and upkeep

const heartbeat: Act = {
  name: 'register and heartbeat',
  async run(stage) {
    stage.arm()
    await stage.again(() => stage.register(stage.proxied))
    const verdict = await stage.again(() => stage.beat(stage.proxied))
    await stage.over()
    expect(verdict).toMatchObject({ kind: 'alive', cancelRequested: [] })
    const beats = (await stage.direct.readBeats()).filter(({ workerId }) => workerId === stage.worker)
    expect(beats).toHaveLength(1)
  },
}

const rescue: Act = {
  name: 'rescue',
  async run(stage) {
    await stage.register()
    const job = await stage.running(gated)
    const { jobId } = job.lease
    stage.arm()
    const request = { deadWorkerIds: [stage.worker], limit: 10 }
    await stage.again(() => stage.proxied.rescue(request))
    await stage.over()
    // A row that a dying session holds is skipped; the next sweeps meet it again.
    await stage.until(async () => {
      await stage.direct.rescue(request)
      expect(await stage.record(jobId)).toMatchObject({ state: 'pending' })
    })
    expect(await stage.record(jobId)).toMatchObject({ state: 'pending', attempt: 1, crashCount: 1 })
    expect(await stage.counted('jobs.rescued')).toBe(1)
    expect(await stage.direct.settle([{ lease: job.lease, action: complete() }])).toEqual([{ kind: 'lost' }])
  },
}

const resurrect: Act = {
  name: 'resurrect',
  async run(stage) {
    await stage.register()
    const job = await stage.running(gated)
    const { jobId } = job.lease
    await stage.direct.settle([{ lease: job.lease, action: bury() }])
    stage.arm()
    const request = {
      jobId,
      mode: 'continue',
      payload: undefined,
      key: undefined,
      revision: undefined,
      absence: undefined,
    } as const
    const verdict = await stage.again(() => stage.proxied.inspector.resurrect(request, by, undefined))
    await stage.over()
    expect(['resurrected', 'not-found']).toContain(verdict.kind)
    expect(await stage.record(jobId)).toMatchObject({ state: 'pending', failureCount: 0 })
    expect(await stage.copies('id = $1', jobId)).toBe(1)
    expect(await stage.counted('jobs.resurrected')).toBe(1)
  },
}

const by = { actor: 'ada', note: '' } as const

const prune: Act = {
  name: 'prune',
  async run(stage) {
    await stage.register()
    const job = await stage.running(mail)
    await stage.direct.settle([{ lease: job.lease, action: complete() }])
    const kept = await stage.add({ type: mail.type })
    stage.arm()
    const limits = { limit: 1_000, archiveRetentionMs: 0, dlqRetentionMs: day }
    await stage.again(() => stage.proxied.prune(limits))
    await stage.over()
    await stage.until(async () => {
      await stage.direct.prune(limits)
      expect(await stage.record(job.lease.jobId)).toBeUndefined()
    })
    expect(await stage.counted('jobs.pruned')).toBe(1)
    expect(await stage.record(kept.id)).toMatchObject({ state: 'pending' })
  },
}

// ---- the ledger and transactions of handlers

/** One request of the ledger; an answer that a lock did not come in time is asked for again. */
function asked(stage: Stage, request: LedgerRequest): Promise<LedgerVerdict> {
  return stage.again(async () => {
    const [verdict] = await stage.proxied.ledger([request])
    if (verdict === undefined) throw new Error('no verdict')
    if (verdict.kind === 'refused') throw verdict.error
    return verdict
  })
}

const ledger: Act = {
  name: 'ledger: intent, outcome and memo',
  async run(stage) {
    await stage.register()
    const job = await stage.running(capture, { ...keyedJob(runtime, stage.queue), queue: stage.queue })
    const keyRef = job.key?.hash ?? ''
    const common = { lease: job.lease, workerId: stage.worker, attempt: 1, keepMs: minute }
    const ref = { kind: 'effect', keyRef, generation: job.generation, name: 'charge', item: '' } as const
    const id = runtime.newId()
    const said = { provider: 'acme', providerKey: 'key-1', fingerprint: 'f', input: '{}', seenIds: [], absentIds: [] }
    stage.arm()
    const opened = await asked(stage, { ...common, ...said, kind: 'open', ref, id })
    const done = { state: 'done', result: '1', failure: null, replayed: false, supersedes: 'same-key' } as const
    const closed = await asked(stage, { kind: 'close', id, ...done })
    const memo = { ...ref, kind: 'memo', name: 'rate' } as const
    const remember = { ...common, kind: 'remember', ref: memo, id: runtime.newId(), result: '7' } as const
    const remembered = await asked(stage, remember)
    await stage.over()
    expect([opened.kind, closed, remembered]).toEqual([
      'opened',
      { kind: 'closed', double: false },
      { kind: 'remembered', result: '7' },
    ])
    const rows = await stage.direct.inspector.effects(job.lease.jobId)
    expect(rows.map(({ kind, state }) => `${kind} ${state}`).sort()).toEqual(['effect done', 'memo done'])
  },
}

const transaction: Act = {
  name: 'ctx.transaction',
  async run(stage) {
    await stage.register()
    const job = await stage.running(capture, { ...keyedJob(runtime, stage.queue), queue: stage.queue })
    const ref = { kind: 'checkpoint', keyRef: job.key?.hash ?? '', generation: 1, name: 'row', item: '' } as const
    const op = `checkpoint ${stage.queue}`
    stage.arm()
    const attempt = (): ReturnType<typeof stage.proxied.transaction> =>
      stage.proxied.transaction(
        {
          lease: job.lease,
          ref,
          id: runtime.newId(),
          workerId: stage.worker,
          attempt: 1,
          keepMs: minute,
          over: AbortSignal.timeout(1_000),
        },
        async (tx) => {
          await (tx as { query(text: string, values: unknown[]): Promise<unknown> }).query(
            'INSERT INTO public.app_rows (note) VALUES ($1)',
            [op],
          )
          return '"written"'
        },
      )
    // A handler that fails, or hangs until its time is over, is run again.
    let verdict = await attempt().catch(() => undefined)
    if (stage.cut.kind === 'late') await stage.over()
    verdict ??= await stage.again(attempt)
    await stage.over()
    expect(['ran', 'replayed']).toContain(verdict.kind)
    expect(verdict).toMatchObject({ result: '"written"' })
    expect(await stage.userRows(op)).toBe(1)
  },
}

const completion: Act = {
  name: 'ctx.complete',
  async run(stage) {
    await stage.register()
    const job = await stage.running(capture, { ...keyedJob(runtime, stage.queue), queue: stage.queue })
    const op = `complete ${stage.queue}`
    const attempt = (): Promise<'committed' | 'failed'> =>
      stage.inTransaction(async (client) => {
        await client.query('INSERT INTO public.app_rows (note) VALUES ($1)', [op])
        const verdict = await stage.proxied.completeIn(client, { lease: job.lease, action: complete() })
        if (verdict.kind !== 'settled' || verdict.repeated) throw new Error('the job is over')
      })
    stage.arm()
    const knows = await attempt()
    await stage.over()
    if (knows === 'failed') await attempt()
    expect(await stage.userRows(op)).toBe(1)
    expect(await stage.record(job.lease.jobId)).toMatchObject({ state: 'completed' })
    expect(await stage.counted('jobs.completed')).toBe(1)
  },
}

export const upkeepActs: readonly Act[] = [heartbeat, rescue, resurrect, prune, ledger, transaction, completion]
