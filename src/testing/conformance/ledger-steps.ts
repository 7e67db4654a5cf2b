/** Steps of cases about the ledger: requests with defaults, and how a job comes to be in review. */
import type { FetchedJob } from '../../core/job.ts'
import {
  compensateName,
  type Intent,
  type LedgerRef,
  type LedgerRequest,
  type LedgerVerdict,
} from '../../core/ledger.ts'
import type { Actor, ResolveRequest, ResolveVerdict } from '../../core/inspector.ts'
import type { StorageDriver, TypePolicy } from '../../core/storage.ts'
import { boom, bury } from './actions.ts'
import { day, keyedPolicy } from './new-job.ts'
import { keyed, operator, present, type Scene } from './scene.ts'

export type OpenRequest = Extract<LedgerRequest, { readonly kind: 'open' }>
export type CloseRequest = Extract<LedgerRequest, { readonly kind: 'close' }>

export const review = keyedPolicy({ whenInterrupted: 'review' })

export function refOf(job: FetchedJob, name = 'charge', item = '', kind: LedgerRef['kind'] = 'effect'): LedgerRef {
  const keyRef = job.key?.hash ?? `job:${job.lease.jobId}`
  return { kind, keyRef, generation: job.generation, name, item }
}

export function openOf(scene: Scene, job: FetchedJob, change: Partial<OpenRequest> = {}): OpenRequest {
  return {
    kind: 'open',
    lease: job.lease,
    ref: refOf(job),
    id: scene.runtime.newId(),
    provider: 'acme',
    providerKey: 'key-1',
    fingerprint: 'f1',
    input: '{"amount":1}',
    workerId: 'worker-1',
    attempt: 1,
    seenIds: [],
    absentIds: [],
    keepMs: day,
    ...change,
  }
}

export function closeOf(id: string, change: Partial<CloseRequest> = {}): CloseRequest {
  return {
    kind: 'close',
    id,
    state: 'done',
    result: '{"id":"ch_1"}',
    failure: null,
    replayed: false,
    supersedes: 'same-key',
    ...change,
  }
}

export async function ask(
  scene: Scene,
  request: LedgerRequest,
  driver: StorageDriver = scene.driver,
): Promise<LedgerVerdict> {
  const [verdict] = await driver.ledger([request])
  return present(verdict, 'a verdict of the ledger')
}

/** Opens an intent; it must be accepted. Gives its id. */
export async function opened(scene: Scene, job: FetchedJob, change: Partial<OpenRequest> = {}): Promise<string> {
  const request = openOf(scene, job, change)
  scene.expect((await ask(scene, request)).kind).toBe('opened')
  return request.id
}

export async function closed(scene: Scene, id: string, change: Partial<CloseRequest> = {}): Promise<void> {
  scene.expect(await ask(scene, closeOf(id, change))).toEqual({ kind: 'closed', double: false })
}

/** What stands of an effect, as an intent that has seen nothing is told. */
export async function known(scene: Scene, job: FetchedJob, ref = refOf(job)): Promise<readonly Intent[]> {
  const verdict = await ask(scene, openOf(scene, job, { ref }))
  scene.expect(verdict.kind).toBe('known')
  return verdict.kind === 'known' ? verdict.intents : []
}

/** States of all rows of the job's key, oldest first. */
export async function states(scene: Scene, jobId: string): Promise<readonly string[]> {
  return (await scene.inspector.effects(jobId)).map(({ state }) => state)
}

/** The same job again, owned and started by `worker-1`. */
export async function startedAgain(scene: Scene, of: TypePolicy = keyed): Promise<FetchedJob> {
  const job = await scene.fetchOne(of)
  if (job.state === 'fetched') await scene.mustStart(job.lease, of)
  return job
}

/** A dead job with one effect in doubt. */
export async function effectInDoubt(scene: Scene, key = 'order-1', change: Partial<OpenRequest> = {}) {
  const job = await scene.runningKeyed(key)
  const intentId = await opened(scene, job, change)
  await scene.mustSettle(job.lease, bury(), 'dead')
  return { job, jobId: job.lease.jobId, intentId, hash: present(job.key, 'a key').hash }
}

/** A dead job whose handler is in doubt, and no effect. */
export async function handlerInDoubt(scene: Scene, key = 'order-1') {
  const job = await scene.runningKeyed(key, review)
  await scene.mustSettle(job.lease, bury({ reason: 'Interrupted', failure: boom, hold: true }), 'dead')
  return { job, jobId: job.lease.jobId, hash: present(job.key, 'a key').hash }
}

/** A dead job that found its key completed by another. */
export async function inConflict(scene: Scene, key = 'order-1') {
  const job = await scene.runningKeyed(key)
  const hash = present(job.key, 'a key').hash
  const other = scene.runtime.newId()
  await scene.plantMarker(hash, { jobId: other, result: '{"charge":"ch_0"}' })
  const action = { kind: 'complete', result: '{"charge":"ch_9"}', markerLifeMs: day, children: [] } as const
  await scene.mustSettle(job.lease, { ...action, keep: { kind: 'full' } }, 'conflict')
  return { job, jobId: job.lease.jobId, hash, other }
}

export async function resolve(
  scene: Scene,
  jobId: string,
  change: Partial<ResolveRequest> = {},
  by: Actor = operator,
): Promise<ResolveVerdict> {
  const revision = change.revision ?? (await scene.find(jobId))?.revision ?? 0
  return scene.inspector.resolve(
    {
      jobId,
      revision,
      decision: 'retry',
      effect: undefined,
      result: null,
      markerLifeMs: 60 * day,
      id: scene.runtime.newId(),
      ...change,
    },
    by,
  )
}

export async function mustResolve(scene: Scene, jobId: string, change: Partial<ResolveRequest>): Promise<void> {
  scene.expect(await resolve(scene, jobId, change)).toEqual({ kind: 'resolved' })
}

/** Whether the worker is asked to undo the job's effects. */
export async function asksToUndo(scene: Scene, job: FetchedJob): Promise<boolean> {
  const { keyRef, generation } = refOf(job)
  const verdict = await ask(scene, { kind: 'names', lease: job.lease, keyRef, generation })
  return verdict.kind === 'names' && verdict.compensate && !verdict.names.includes(compensateName)
}
