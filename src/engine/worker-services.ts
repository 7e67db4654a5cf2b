/**
 * What a handler's ctx borrows from other stages: making children, completing and checkpoints in the handler's own
 * transactions, effects. One object per attempt whose parts are made with their first use: most handlers need none.
 */
import { contractOf, type Job } from '../core/contract.ts'
import type { ClientConfig } from '../core/config.ts'
import type { ChildOptions } from '../core/ctx.ts'
import { ChokaQError } from '../core/errors.ts'
import type { FetchedJob, NewJob } from '../core/job.ts'
import { checkResult, checkResultSync } from '../core/preparation.ts'
import type { Runtime } from '../core/runtime.ts'
import type { EnqueueVerdict, SettleAction, SettleVerdict } from '../core/storage.ts'
import type { SqliteLike, TxArg } from '../core/tx.ts'
import { prepareJob, prepareJobSync } from './enqueue/prepare-job.ts'
import { sent, sentSync } from './enqueue/sent-jobs.ts'
import type { GateResult } from './fetch/gate.ts'
import { Checkpoints } from './process/checkpoints.ts'
import type { EffectScope, ScopeGuards } from './process/effect-scope.ts'
import type { ChildLineage, CtxServices } from './process/handler-ctx.ts'
import { jsonTextFor, type AttemptIdentity, type WorkerCore } from './worker-core.ts'
import { effectScopeFor } from './worker-effects.ts'
import type { RegisteredType } from './worker-types.ts'

export type RunnableGate = Extract<GateResult, { kind: 'run' }>

export interface AttemptServicesParts {
  readonly core: WorkerCore
  readonly of: AttemptIdentity
  readonly job: FetchedJob
  readonly type: RegisteredType
  readonly gate: RunnableGate
  /** Whether this worker may still act on its leases. */
  readonly confirmed: () => boolean
}

export class AttemptServices implements CtxServices {
  readonly #parts: AttemptServicesParts
  #scope: EffectScope | undefined

  constructor(parts: AttemptServicesParts) {
    this.#parts = parts
  }

  get runtime(): Runtime {
    return this.#parts.core.runtime
  }

  /** Undefined until something of it was used. */
  get startedScope(): EffectScope | undefined {
    return this.#scope
  }

  log(message: string, fields: Readonly<Record<string, unknown>>): void {
    const { core, of } = this.#parts
    core.events.emit({ name: 'job.log', ...of, message, fields })
  }

  resultText(result: unknown): string {
    const { core, job } = this.#parts
    return jsonTextFor(core)(result, `The result of "${job.type}"`)
  }

  effectScope(guards: ScopeGuards): EffectScope {
    const { core, of, job, type, gate, confirmed } = this.#parts
    this.#scope ??= effectScopeFor(core, of, job, type, gate, guards, confirmed)
    return this.#scope
  }

  async prepareChild(child: Job, payload: unknown, options: ChildOptions, lineage: ChildLineage): Promise<NewJob> {
    const { core, job } = this.#parts
    const { runtime, client, tracing } = core
    const prepared = await prepareJob(contractOf(child), payload, inherit(options, job), client, runtime, lineage)
    const spare = lineage.id === undefined ? {} : { spareId: runtime.newId() }
    return sentSync(tracing, { ...prepared.row, ...spare }, (row) => row)
  }

  enqueueChildSync(tx: SqliteLike, child: Job, payload: unknown, options: ChildOptions, lineage: ChildLineage): void {
    const { core, job } = this.#parts
    const { driver, runtime, client, tracing } = core
    const { row } = prepareJobSync(contractOf(child), payload, inherit(options, job), client, runtime, lineage)
    const [verdict] = sentSync(tracing, row, (traced) => driver.enqueueSync(tx, [traced]))
    refuseUnstored(child.type, row.id, verdict)
  }

  async enqueueChildIn(
    tx: TxArg,
    child: Job,
    payload: unknown,
    options: ChildOptions,
    lineage: ChildLineage,
  ): Promise<void> {
    const { core, job } = this.#parts
    const { driver, runtime, client, tracing } = core
    const { row } = await prepareJob(contractOf(child), payload, inherit(options, job), client, runtime, lineage)
    const [verdict] = await sent(tracing, [row], (rows) => driver.enqueueIn(tx, rows))
    refuseUnstored(child.type, row.id, verdict)
  }

  completeSync(tx: SqliteLike, result: unknown, children: readonly NewJob[]): void {
    const { core, job, type } = this.#parts
    const text = checkResultSync(type.handler.contract, result, (value) => this.resultText(value))
    const action = completion(type, core.client, text, children)
    const outcomes = this.#scope?.outcomes() ?? []
    refuseUncompleted(job, core.driver.completeSync(tx, { lease: job.lease, outcomes, action }))
  }

  async completeIn(tx: TxArg, result: unknown, children: readonly NewJob[]): Promise<void> {
    const { core, job, type } = this.#parts
    const text = await checkResult(type.handler.contract, result, (value) => this.resultText(value))
    const action = completion(type, core.client, text, children)
    const outcomes = this.#scope?.outcomes() ?? []
    refuseUncompleted(job, await core.driver.completeIn(tx, { lease: job.lease, outcomes, action }))
  }

  /** Those of the attempt: its ctx asks once and keeps them. */
  checkpoints(): Checkpoints {
    const { core, of, job, type, gate } = this.#parts
    const { driver, runtime } = core
    const keyRef = gate.keyHash ?? `job:${job.lease.jobId}`
    return new Checkpoints({
      jsonText: jsonTextFor(core),
      request: (name) => ({
        lease: job.lease,
        ref: { kind: 'checkpoint', keyRef, generation: job.generation, name, item: '' },
        id: runtime.newId(),
        workerId: of.workerId,
        attempt: of.attempt,
        keepMs: type.ledgerKeepMs,
      }),
      transaction: (request, work) => driver.transaction(request, work),
      transactionSync: (request, work) => driver.transactionSync(request, work),
    })
  }
}

/** The action that completes a job from inside the handler's own transaction. */
function completion(
  type: RegisteredType,
  client: ClientConfig,
  result: string | null,
  children: readonly NewJob[],
): Extract<SettleAction, { kind: 'complete' }> {
  return {
    kind: 'complete',
    result,
    markerLifeMs: type.policy.markerLifeMs,
    ...(type.handler.effects.size > 0 ? { guard: true as const } : {}),
    keep: type.handler.keepsCompleted ? { kind: 'full' } : { kind: 'stub', forMs: client.resendForMs },
    children,
  }
}

/** Throws into the handler's transaction, which rolls back with it. */
function refuseUncompleted(job: FetchedJob, verdict: SettleVerdict): void {
  const { jobId } = job.lease
  if (verdict.kind === 'refused') throw verdict.error
  // The caller's transaction rolls back with this error, and the burial with it.
  if (verdict.kind === 'settled' && verdict.outcome === 'dead')
    throw new ChokaQError('CHOKAQ_COMPLETE_IN_DOUBT', { jobId })
  if (verdict.kind === 'lost' || verdict.outcome !== 'completed') throw new ChokaQError('CHOKAQ_LEASE_LOST', { jobId })
}

function refuseUnstored(type: string, id: string, verdict: EnqueueVerdict | undefined): void {
  if (verdict?.kind === 'refused') throw verdict.error
  if (verdict?.kind === 'id-reused') throw new ChokaQError('CHOKAQ_CHILD_REUSED', { type, holderId: id })
  if (verdict?.kind === 'key-reused') {
    throw new ChokaQError('CHOKAQ_KEY_REUSED', { type, holderId: verdict.jobId, paths: [] })
  }
}

/** A child belongs to its parent's tenant. */
function inherit<T extends object>(options: T, job: FetchedJob): T & { tenant?: string } {
  return job.tenant === undefined ? options : { ...options, tenant: job.tenant }
}
