/** 'chokaq/worker': handlers and the engine. */
export {
  defineHandler,
  type Answers,
  type Handler,
  type HandlerDefinition,
  type RetryOptions,
  type SideEffects,
} from './core/handler.ts'
export { FatalError, NotExecuted, RetryAfter, ReviewNeeded } from './core/control-flow.ts'
export type { ChildOptions, Completed, Ctx, Middleware, MiddlewareCtx } from './core/ctx.ts'
export type { WorkerOptions } from './core/config.ts'
export { createWorker, type CreateWorkerOptions, type Worker, type WorkerState } from './engine/worker.ts'
