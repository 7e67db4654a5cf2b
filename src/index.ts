/** 'chokaq': contracts and the client. It imports no driver, no handler, and of the engine only the enqueue stage. */
export { defineJob, type Job, type PayloadIn, type PayloadOut, type Stored } from './core/contract.ts'
export type { Duration } from './core/duration.ts'
export { ChokaQError, errorCodes, hasCode, isTransient, type ErrorCode, type ErrorDetails } from './core/errors.ts'
export { logEvents, type EventLogger, type LogLevel } from './core/event-log.ts'
export type { ChokaQEvent, EventListener, EventName } from './core/events.ts'
export type {
  Actor,
  AuditRow,
  CancelVerdict,
  JobFilter,
  JobPage,
  QueueRow,
  ResurrectVerdict,
  SchemaState,
  WorkerRow,
} from './core/inspector.ts'
export type { JobRecord, Pillar, DeadReason, HotState, ArchiveOutcome } from './core/job.ts'
export type { Storage } from './core/storage.ts'
export type { AsyncTx, KyselyLike, PgLike, PostgresJsLike, PrismaLike, SqliteLike, TxArg } from './core/tx.ts'
export type { ClientOptions } from './core/config.ts'
export { createChokaQ, type ChokaQ, type CreateOptions } from './engine/enqueue/client.ts'
export type { EnqueueResult } from './engine/enqueue/answer.ts'
export type { BatchAnswer } from './engine/enqueue/enqueuer.ts'
export type { EnqueueOptions } from './engine/enqueue/enqueue-options.ts'
export type { Health, HealthCheck, HealthOptions, HealthReason, HealthState } from './engine/health.ts'
export type { ListOptions, ResurrectOptions } from './engine/operators.ts'
export type { AdoptOptions, Operator, Review, ReviewOutcome } from './engine/reviews.ts'
export type { IntentState, LedgerKind, LedgerRecord } from './core/ledger.ts'
