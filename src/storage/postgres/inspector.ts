/** The operators' side of this storage: reads, and acts in one audited transaction each. */
import type {
  Actor,
  AuditRequest,
  AuditRow,
  BoundedCount,
  CancelVerdict,
  CountRequest,
  Doubt,
  Inspector,
  JobFilter,
  JobPage,
  ListRequest,
  MarkerRow,
  ObservedEffect,
  QueueChange,
  QueueRow,
  ResolveRequest,
  ResolveVerdict,
  ResurrectRequest,
  ResurrectVerdict,
  SchemaState,
  Upkeep,
  WorkerRow,
} from '../../core/inspector.ts'
import type { CounterRow } from '../../core/counters.ts'
import type { JobRecord } from '../../core/job.ts'
import type { LedgerRecord } from '../../core/ledger.ts'
import type { MetricQuery, MetricSeries } from '../../core/metrics.ts'
import type { JobTypeRow } from '../../core/storage.ts'
import type { Session } from './session.ts'
import {
  countJobs,
  getJob,
  getMarker,
  listAudit,
  listJobs,
  listJobTypes,
  listQueues,
  listStats,
  listWorkers,
  readSchema,
} from './statements/inspect.ts'
import { cancelJob, purge, resurrect, retryNow, setQueue } from './statements/operate.ts'
import { listDoubts, listEffects, observedEffects } from './statements/list-effects.ts'
import { readMetrics } from './statements/metrics.ts'
import { resolve } from './statements/resolve.ts'
import { readUpkeep } from './statements/upkeep.ts'
import type { Unit } from './transactions.ts'

export class PostgresInspector implements Inspector {
  readonly #run: <T>(call: string, unit: Unit<T>) => Promise<T>

  constructor(run: <T>(call: string, unit: Unit<T>) => Promise<T>) {
    this.#run = run
  }

  /** Statements of their own, so that no read holds a snapshot open. */
  #read<T>(call: string, work: (session: Session) => Promise<T>): Promise<T> {
    return this.#run(call, { isOneStatement: true, isRepeatable: true, work: ({ session }) => work(session) })
  }

  get(jobId: string): Promise<JobRecord | undefined> {
    return this.#read('inspector.get', (session) => getJob(session, jobId))
  }

  list(request: ListRequest): Promise<JobPage> {
    return this.#read('inspector.list', (session) => listJobs(session, request))
  }

  count(request: CountRequest): Promise<BoundedCount> {
    return this.#read('inspector.count', (session) => countJobs(session, request))
  }

  queues(): Promise<readonly QueueRow[]> {
    return this.#read('inspector.queues', (session) => listQueues(session))
  }

  workers(): Promise<readonly WorkerRow[]> {
    return this.#read('inspector.workers', (session) => listWorkers(session))
  }

  jobTypes(): Promise<readonly JobTypeRow[]> {
    return this.#read('inspector.jobTypes', (session) => listJobTypes(session))
  }

  audit(request: AuditRequest): Promise<readonly AuditRow[]> {
    return this.#read('inspector.audit', (session) => listAudit(session, request))
  }

  stats(): Promise<readonly CounterRow[]> {
    return this.#read('inspector.stats', (session) => listStats(session))
  }

  metrics(query: MetricQuery): Promise<MetricSeries> {
    return this.#read('inspector.metrics', (session) => readMetrics(session, query))
  }

  schema(): Promise<SchemaState> {
    return this.#read('inspector.schema', (session) => readSchema(session))
  }

  upkeep(): Promise<Upkeep> {
    return this.#read('inspector.upkeep', (session) => readUpkeep(session))
  }

  marker(keyHash: string): Promise<MarkerRow | undefined> {
    return this.#read('inspector.marker', (session) => getMarker(session, keyHash))
  }

  effects(jobId: string): Promise<readonly LedgerRecord[]> {
    return this.#read('inspector.effects', (session) => listEffects(session, jobId))
  }

  observedEffects(limit: number): Promise<readonly ObservedEffect[]> {
    return this.#read('inspector.observedEffects', (session) => observedEffects(session, limit))
  }

  doubts(jobIds: readonly string[]): Promise<readonly Doubt[]> {
    return this.#read('inspector.doubts', (session) => listDoubts(session, jobIds))
  }

  resolve(request: ResolveRequest, by: Actor): Promise<ResolveVerdict> {
    return this.#run('inspector.resolve', {
      work: (tx) => resolve(tx, request, by),
      beforeCommit: 'resolve-before-commit',
    })
  }

  setQueue(change: QueueChange, by: Actor): Promise<void> {
    return this.#run('inspector.setQueue', { work: (tx) => setQueue(tx, change, by) })
  }

  cancel(jobId: string, by: Actor): Promise<CancelVerdict> {
    return this.#run('inspector.cancel', { work: (tx) => cancelJob(tx, jobId, by) })
  }

  retryNow(jobId: string, by: Actor): Promise<boolean> {
    return this.#run('inspector.retryNow', { work: (tx) => retryNow(tx, jobId, by) })
  }

  resurrect(request: ResurrectRequest, by: Actor, continueWithinMs: number | undefined): Promise<ResurrectVerdict> {
    return this.#run('inspector.resurrect', {
      work: (tx) => resurrect(tx, request, by, continueWithinMs),
      beforeCommit: 'resurrect-before-commit',
    })
  }

  purge(
    request: { readonly jobIds?: readonly string[]; readonly filter?: JobFilter; readonly limit: number },
    by: Actor,
  ): Promise<number> {
    return this.#run('inspector.purge', { work: (tx) => purge(tx, request, by) })
  }
}
