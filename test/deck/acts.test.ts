// What a person does through the Deck, on every storage: it happens, it is audited with who and why, and what is not
// possible says so.
import type { ChokaQ } from 'chokaq'
import { describe, expect, it } from 'vitest'
import type {
  ActAnswer,
  BulkAnswer,
  BulkPreview,
  JobDetail,
  JobPageView,
  PayloadCheck,
  ReviewAnswer,
  ReviewDetail,
  ReviewView,
} from '../../src/deck/wire-jobs.ts'
import type {
  AuditView,
  ChecklistView,
  MetricSeriesView,
  Overview,
  QueueView,
  WorkerView,
} from '../../src/deck/wire.ts'
import { capture, capturing, resize, resizing, unguarded } from '../engine/contracts.ts'
import { storages } from '../engine/storages.ts'
import { decks, tokens, type DeckScene } from './deck-scene.ts'

const note = 'asked for by the customer'
const fail = (): Promise<never> => Promise.reject(new TypeError('boom'))
const once = { retry: { attempts: 1 } }

async function deadResize(scene: DeckScene, count = 1): Promise<readonly string[]> {
  const ids: string[] = []
  for (let n = 0; n < count; n += 1) ids.push((await scene.chokaq.enqueue(resize, { id: `p${n}` })).id)
  await scene.world.drain([resizing(fail, once)])
  return ids
}

async function inDoubt(scene: DeckScene): Promise<string> {
  const { id } = await scene.chokaq.enqueue(capture, { paymentId: 'pay_1' })
  await scene.world.drain([unguarded(fail)])
  return id
}

async function lastAct(chokaq: ChokaQ): Promise<string> {
  const [row] = await chokaq.insight.audit({ limit: 1 })
  return row === undefined ? 'nothing' : `${row.actor} ${row.act} ${row.subject} ${row.note}`
}

describe.each(storages)('acts on $name', (kind) => {
  const opened = decks(kind)
  const open = () => opened({ auth: { tokens }, jobs: [capture] })
  const operator = { role: 'operator' } as const
  const admin = { role: 'admin' } as const

  it('cancels, once', async () => {
    const scene = open()
    const { id } = await scene.chokaq.enqueue(resize, { id: 'p1' })
    const cancel = () => scene.post<ActAnswer>(`api/jobs/${id}/cancel`, { note: ` ${note}\n` }, operator)
    expect(await cancel()).toMatchObject({ done: true })
    expect(await lastAct(scene.chokaq)).toBe(`otto cancel ${id} ${note}`)
    expect(await cancel()).toEqual({ done: false, title: 'It was cancelled already.' })
    expect(await scene.refusal('api/jobs/nobody/cancel', { ...operator, body: {} })).toBe('404 job-not-found')
  })

  it('starts a scheduled job now', async () => {
    const scene = open()
    const { id } = await scene.chokaq.enqueue(resize, { id: 'p1' }, { delay: '1h' })
    const retry = () => scene.post<ActAnswer>(`api/jobs/${id}/retry-now`, { note }, operator)
    expect(await retry()).toMatchObject({ done: true })
    expect(await scene.world.state(id)).toBe('pending')
    expect(await lastAct(scene.chokaq)).toBe(`otto retry-now ${id} ${note}`)
    expect(await retry()).toMatchObject({ done: false, title: expect.stringContaining('pending') as unknown })
  })

  it('brings a dead job back, against the revision that was seen', async () => {
    const scene = open()
    const [id = ''] = await deadResize(scene)
    const detail = await scene.get<JobDetail>(`api/jobs/${id}`, operator)
    expect(detail.acts.filter(({ allowed }) => allowed).map(({ act }) => act)).toEqual([
      'resurrect-continue',
      'resurrect-new',
    ])
    const body = { mode: 'continue', note, revision: detail.job.revision }
    expect(await scene.refusal(`api/jobs/${id}/resurrect`, { ...operator, body: { ...body, revision: 99 } })).toBe(
      '409 changed',
    )
    expect(await scene.post<ActAnswer>(`api/jobs/${id}/resurrect`, body, operator)).toMatchObject({ done: true })
    expect(await scene.world.state(id)).toBe('pending')
    expect(await lastAct(scene.chokaq)).toBe(`otto resurrect ${id} ${note}`)
  })

  it('edits a payload: checked against the stored schema, by an admin only', async () => {
    const scene = open()
    const [id = ''] = await deadResize(scene)
    const check = (payload: string) => scene.post<PayloadCheck>(`api/jobs/${id}/check-payload`, { payload }, admin)
    expect(await check('{"id":"p2"}')).toEqual({ ok: true, errors: [] })
    expect(await check('{"id":1}')).toMatchObject({ ok: false, errors: [{ path: 'id' }] })
    expect(await check('{"id":')).toMatchObject({ ok: false, errors: [{ path: '' }] })
    const body = { mode: 'continue', note, revision: 1, payload: '{"id":"p2"}' }
    expect(await scene.refusal(`api/jobs/${id}/resurrect`, { ...operator, body })).toBe('403 role-too-low')
    const wrong = { ...body, payload: '{"id":1}' }
    expect(await scene.refusal(`api/jobs/${id}/resurrect`, { ...admin, body: wrong })).toBe('422 payload-invalid')
    expect(await scene.post<ActAnswer>(`api/jobs/${id}/resurrect`, body, admin)).toMatchObject({ done: true })
    expect((await scene.world.job(id)).payload).toBe('{"id":"p2"}')
  })

  it('edits a keyed payload with the contract, and another key is another operation', async () => {
    const scene = open()
    const { id } = await scene.chokaq.enqueue(capture, { paymentId: 'pay_1' })
    await scene.world.drain([capturing(fail, once)])
    const body = { mode: 'continue', note, revision: 1, payload: '{"paymentId":"pay_2"}' }
    expect(await scene.post<ActAnswer>(`api/jobs/${id}/resurrect`, body, admin)).toMatchObject({ done: false })
    const other = { ...body, mode: 'new-operation' }
    expect(await scene.post<ActAnswer>(`api/jobs/${id}/resurrect`, other, admin)).toMatchObject({ done: true })
    expect((await scene.world.job(id)).keyPrefix).toBe('pay_2')
  })

  it('does not edit a keyed payload without the contract', async () => {
    const scene = opened({ auth: { tokens } })
    const { id } = await scene.chokaq.enqueue(capture, { paymentId: 'pay_1' })
    await scene.world.drain([capturing(fail, once)])
    const body = { mode: 'continue', note, revision: 1, payload: '{"paymentId":"pay_2"}' }
    expect(await scene.refusal(`api/jobs/${id}/resurrect`, { ...admin, body })).toBe('409 contract-needed')
  })

  it('purges what was typed, and never what is in doubt', async () => {
    const scene = open()
    const [id = ''] = await deadResize(scene)
    const path = `api/jobs/${id}/purge`
    expect(await scene.refusal(path, { ...operator, body: { note, confirm: id } })).toBe('403 role-too-low')
    expect(await scene.refusal(path, { ...admin, body: { note } })).toBe('400 confirmation-needed')
    expect(await scene.post<ActAnswer>(path, { note, confirm: id }, admin)).toMatchObject({ done: true })
    expect(await scene.world.state(id)).toBe('nowhere')
    expect(await lastAct(scene.chokaq)).toBe(`ada purge ${id} ${note}`)
    const doubtful = await inDoubt(scene)
    const body = { note, confirm: doubtful }
    expect(await scene.post<ActAnswer>(`api/jobs/${doubtful}/purge`, body, admin)).toMatchObject({ done: false })
  })

  it('previews a bulk act, does a small sample first, then the rest call by call', async () => {
    const scene = open()
    await deadResize(scene, 7)
    const target = { act: 'purge', filter: { type: 'image.resize.v1', reason: 'MaxRetriesExceeded' } }
    const preview = await scene.post<BulkPreview>('api/bulk/preview', target, admin)
    expect(preview).toMatchObject({ count: 7, isExact: true, phrase: 'purge 7' })
    expect(preview.sample).toHaveLength(7)
    const run = (body: object) => scene.post<BulkAnswer>('api/bulk/run', { ...target, note, ...body }, admin)
    const refused = { ...target, note, limit: 2 }
    expect(await scene.refusal('api/bulk/run', { ...admin, body: refused })).toBe('409 confirmation-needed')
    expect(await scene.refusal('api/bulk/run', { ...admin, body: { ...refused, phrase: 'purge 6' } })).toBe(
      '409 confirmation-needed',
    )
    const sample = await run({ limit: 2, phrase: 'purge 7' })
    expect(sample).toMatchObject({ doneCount: 2, refused: [] })
    const rest = await run({ limit: 1_000, phrase: 'purge 7', cursor: sample.nextCursor })
    expect(rest).toEqual({ doneCount: 5, refused: [], nextCursor: null })
    expect((await scene.chokaq.dlq.list()).jobs).toEqual([])
    expect(await scene.refusal('api/bulk/preview', { ...operator, body: target })).toBe('403 role-too-low')
  })

  it('resurrects and cancels by filter, and counts why something was left out', async () => {
    const scene = open()
    await deadResize(scene, 2)
    await inDoubt(scene)
    const back = { act: 'resurrect', filter: {}, note, limit: 1_000 }
    expect((await scene.post<BulkPreview>('api/bulk/preview', back, operator)).phrase).toBe(null)
    const answer = await scene.post<BulkAnswer>('api/bulk/run', back, operator)
    expect(answer).toMatchObject({ doneCount: 2, refused: [{ count: 1 }], nextCursor: null })
    const stop = { act: 'cancel', filter: { queue: 'default' }, note, limit: 1_000, phrase: 'cancel 2' }
    expect(await scene.post<BulkAnswer>('api/bulk/run', stop, operator)).toMatchObject({ doneCount: 2 })
    expect(await scene.chokaq.insight.audit({ limit: 500 })).toHaveLength(4)
  })

  it('pauses, resumes and limits a queue', async () => {
    const scene = open()
    const change = (body: object) => scene.post<{ queue: QueueView }>('api/queues/a%20b', { note, ...body }, operator)
    expect(await change({ paused: true })).toMatchObject({ queue: { name: 'a b', paused: true, maxConcurrency: null } })
    expect(await lastAct(scene.chokaq)).toBe(`otto set-queue a b ${note}`)
    expect(await change({ paused: false, maxConcurrency: 3 })).toMatchObject({
      queue: { paused: false, maxConcurrency: 3 },
    })
    expect(await change({ maxConcurrency: null })).toMatchObject({ queue: { maxConcurrency: null } })
    for (const wrong of [{}, { paused: 1 }, { maxConcurrency: 0 }, { maxConcurrency: '3' }, { maxConcurrency: 1.5 }]) {
      expect(await scene.refusal('api/queues/x', { ...operator, body: { note, ...wrong } })).toBe('400 request-invalid')
    }
  })

  it('shows a review with its evidence and the four decisions, and decides it once', async () => {
    const scene = open()
    const id = await inDoubt(scene)
    const { reviews } = await scene.get<{ reviews: ReviewView[] }>('api/reviews', operator)
    expect(reviews).toMatchObject([{ id, type: 'payment.capture.v1', key: 'pay_1', message: 'boom' }])
    const detail = await scene.get<ReviewDetail>(`api/reviews/${id}`, operator)
    expect(detail.decisions.map(({ decision, allowed }) => [decision, allowed])).toEqual([
      ['adopt', true],
      ['retry', true],
      ['abandon', true],
      ['compensate', true],
    ])
    expect(detail.detail.marker).toMatchObject({ state: 'in_doubt', jobId: id })
    const body = { revision: detail.review.revision, note, result: '{"chargeId":"ch_1"}' }
    const adopt = (more: object) => ({ ...operator, body: { ...body, ...more } })
    expect(await scene.refusal(`api/reviews/${id}/adopt`, adopt({ result: 'ch_1' }))).toBe('400 request-invalid')
    expect(await scene.refusal(`api/reviews/${id}/adopt`, adopt({ revision: 99 }))).toBe('409 not-possible')
    expect(await scene.post<ReviewAnswer>(`api/reviews/${id}/adopt`, body, operator)).toEqual({ outcome: 'resolved' })
    expect(await scene.world.job(id)).toMatchObject({ state: 'completed', result: '{"chargeId":"ch_1"}' })
    expect(await scene.post<ReviewAnswer>(`api/reviews/${id}/retry`, body, operator)).toEqual({
      outcome: 'already-resolved',
      by: 'otto',
      as: 'adopt',
    })
    expect(await scene.refusal(`api/reviews/${id}`, operator)).toBe('404 job-not-found')
  })

  it('a viewer sees the decisions, and why they are not theirs', async () => {
    const scene = open()
    const id = await inDoubt(scene)
    const { decisions, detail } = await scene.get<ReviewDetail>(`api/reviews/${id}`, { role: 'viewer' })
    expect(decisions.every(({ allowed, explanation }) => !allowed && explanation.includes('role operator'))).toBe(true)
    expect(detail.acts.every(({ allowed, why }) => !allowed && why !== null)).toBe(true)
  })

  it('tells a job from its first day to its last, duplicates and acts included', async () => {
    const scene = open()
    const { id } = await scene.chokaq.enqueue(capture, { paymentId: 'pay_1' }, { delay: '1m', tags: ['eu'] })
    await scene.chokaq.jobs.retryNow(id, { actor: 'ada', note })
    await scene.world.drain([capturing()])
    const { timeline, job, audit } = await scene.get<JobDetail>(`api/jobs/${id}`, operator)
    expect(timeline.map(({ kind: each }) => each)).toEqual(
      expect.arrayContaining(['enqueued', 'started', 'finished', 'operator']),
    )
    expect(timeline.map(({ atMs }) => atMs)).toEqual(timeline.map(({ atMs }) => atMs).toSorted((a, b) => a - b))
    expect(job).toMatchObject({ state: 'completed', key: 'pay_1', tags: ['eu'], result: '{"chargeId":"ch_pay_1"}' })
    expect(audit).toMatchObject([{ act: 'retry-now', actor: 'ada', note }])
  })

  it('reads every page', async () => {
    const scene = open()
    await deadResize(scene, 3)
    await scene.chokaq.enqueue(resize, { id: 'later' }, { delay: '1h' })
    await scene.world.start([resizing(async () => null)])
    const overview = await scene.get<Overview>('api/overview?range=15m', operator)
    expect(overview.live).toMatchObject({ deadCount: 3, scheduledCount: 1, workerCount: 2, totals: { dead: 3 } })
    expect(overview.times).toHaveLength(overview.throughput[0]?.values.length ?? -1)
    const series = await scene.get<MetricSeriesView>('api/metrics?range=7d&type=image.resize.v1', operator)
    expect(series.claims).toHaveLength(7)
    const { queues } = await scene.get<{ queues: QueueView[] }>('api/queues', operator)
    expect(queues).toMatchObject([{ name: 'default', served: true, deadCount: 3 }])
    const page = await scene.get<JobPageView>('api/jobs?pillar=dlq&limit=2', operator)
    const next = await scene.get<JobPageView>(`api/jobs?pillar=dlq&limit=2&cursor=${page.nextCursor}`, operator)
    expect([page.jobs.length, next.jobs.length]).toEqual([2, 1])
    const { workers } = await scene.get<{ workers: WorkerView[] }>('api/workers', operator)
    // The one that drained, and the one that runs.
    expect(workers.map(({ state, types }) => `${state} ${types.join()}`)).toEqual(
      Array(2).fill('alive image.resize.v1'),
    )
    const { rows } = await scene.get<{ rows: ChecklistView[] }>('api/checklist', operator)
    expect(rows).toMatchObject([{ type: 'image.resize.v1', sideEffects: 'none', level: 'at least once' }])
    expect(await scene.get('api/types', operator)).toEqual({ types: ['image.resize.v1'], queues: ['default'] })
    const audit = await scene.get<{ rows: AuditView[]; nextBefore: number | null }>('api/audit?limit=1', operator)
    expect(audit).toEqual({ rows: [], nextBefore: null })
  })
})
