/** 'chokaq/worker': handlers and the engine. */
export {
  defineHandler,
  type Answers,
  type Handler,
  type HandlerDefinition,
  type RetryOptions,
  type SideEffects,
} from './core/handler.ts'
export {
  defineEffect,
  type CallOptions,
  type Effect,
  type EffectDefinition,
  type Effects,
  type Found,
} from './core/effect.ts'
export { defineProvider, noKey, type KeyFormat, type Provider, type ProviderDefinition } from './core/provider.ts'
export {
  adyen,
  checkoutCom,
  mangopay,
  paypalOrders,
  paypalPayments,
  square,
  stripe,
} from './core/providers/payments.ts'
export { brevo, resend, sparkpost, sqsFifo, twilio, webhookReceiver } from './core/providers/messages.ts'
export { statusOf, type Verdict } from './core/classify.ts'
export { EffectDeclined, FatalError, NotExecuted, RetryAfter, ReviewNeeded } from './core/control-flow.ts'
export type { ChildOptions, Completed, Ctx, Middleware, MiddlewareCtx } from './core/ctx.ts'
export type { WorkerOptions } from './core/config.ts'
export type { Health, HealthCheck, HealthOptions, HealthReason, HealthState, WorkerVitals } from './engine/health.ts'
export { createWorker, type CreateWorkerOptions, type Worker, type WorkerState } from './engine/worker.ts'
