/** The operators' side of this storage: reads on one snapshot, acts in one audited transaction. */
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
import type { Transaction, WriteUnit } from './write-transaction.ts'

export interface InspectorAccess {
  read<T>(call: string, work: (tx: Transaction) => T): Promise<T>
  write<T>(call: string, unit: WriteUnit<T>): Promise<T>
}

export class SqliteInspector implements Inspector {
  readonly #access: InspectorAccess

  constructor(access: InspectorAccess) {
    this.#access = access
  }

  get(jobId: string): Promise<JobRecord | undefined> {
    return this.#access.read('inspector.get', ({ session }) => getJob(session, jobId))
  }

  list(request: ListRequest): Promise<JobPage> {
    return this.#access.read('inspector.list', ({ session }) => listJobs(session, request))
  }

  count(request: CountRequest): Promise<BoundedCount> {
    return this.#access.read('inspector.count', ({ session }) => countJobs(session, request))
  }

  queues(): Promise<readonly QueueRow[]> {
    return this.#access.read('inspector.queues', ({ session, nowMs }) => listQueues(session, nowMs))
  }

  workers(): Promise<readonly WorkerRow[]> {
    return this.#access.read('inspector.workers', ({ session }) => listWorkers(session))
  }

  jobTypes(): Promise<readonly JobTypeRow[]> {
    return this.#access.read('inspector.jobTypes', ({ session }) => listJobTypes(session))
  }

  audit(request: AuditRequest): Promise<readonly AuditRow[]> {
    return this.#access.read('inspector.audit', ({ session }) => listAudit(session, request))
  }

  stats(): Promise<readonly CounterRow[]> {
    return this.#access.read('inspector.stats', ({ session }) => listStats(session))
  }

  metrics(query: MetricQuery): Promise<MetricSeries> {
    return this.#access.read('inspector.metrics', (tx) => readMetrics(tx, query))
  }

  schema(): Promise<SchemaState> {
    return this.#access.read('inspector.schema', ({ session }) => readSchema(session))
  }

  upkeep(): Promise<Upkeep> {
    return this.#access.read('inspector.upkeep', (tx) => readUpkeep(tx))
  }

  marker(keyHash: string): Promise<MarkerRow | undefined> {
    return this.#access.read('inspector.marker', ({ session }) => getMarker(session, keyHash))
  }

  effects(jobId: string): Promise<readonly LedgerRecord[]> {
    return this.#access.read('inspector.effects', ({ session }) => listEffects(session, jobId))
  }

  observedEffects(limit: number): Promise<readonly ObservedEffect[]> {
    return this.#access.read('inspector.observedEffects', ({ session }) => observedEffects(session, limit))
  }

  doubts(jobIds: readonly string[]): Promise<readonly Doubt[]> {
    return this.#access.read('inspector.doubts', ({ session }) => listDoubts(session, jobIds))
  }

  resolve(request: ResolveRequest, by: Actor): Promise<ResolveVerdict> {
    return this.#access.write('inspector.resolve', {
      work: (tx) => resolve(tx, request, by),
      beforeCommit: 'resolve-before-commit',
    })
  }

  setQueue(change: QueueChange, by: Actor): Promise<void> {
    return this.#access.write('inspector.setQueue', { work: (tx) => setQueue(tx, change, by) })
  }

  cancel(jobId: string, by: Actor): Promise<CancelVerdict> {
    return this.#access.write('inspector.cancel', { work: (tx) => cancelJob(tx, jobId, by) })
  }

  retryNow(jobId: string, by: Actor): Promise<boolean> {
    return this.#access.write('inspector.retryNow', { work: (tx) => retryNow(tx, jobId, by) })
  }

  resurrect(request: ResurrectRequest, by: Actor, continueWithinMs: number | undefined): Promise<ResurrectVerdict> {
    return this.#access.write('inspector.resurrect', {
      work: (tx) => resurrect(tx, request, by, continueWithinMs),
      beforeCommit: 'resurrect-before-commit',
    })
  }

  purge(
    request: { readonly jobIds?: readonly string[]; readonly filter?: JobFilter; readonly limit: number },
    by: Actor,
  ): Promise<number> {
    return this.#access.write('inspector.purge', { work: (tx) => purge(tx, request, by) })
  }
}
