/** 'chokaq/http': receivers that turn requests into jobs, once each. Web-standard; toNodeListener is for Node servers. */
export { api, type ApiOptions, type Authorization } from './api.ts'
export { healthHandler, type HealthHandlerOptions } from './health.ts'
export {
  type NodeListener,
  type NodeListenerOptions,
  type NodeRequestHandler,
  type RequestInfo,
  toNodeListener,
} from './node.ts'
export type { ErrorListener, RequestHandler } from './receiver.ts'
export {
  type HmacOptions,
  type TimestampedHmacOptions,
  verifyHmacSha256,
  verifyTimestampedHmacSha256,
} from './verify-hmac.ts'
export { webhook, type WebhookOptions } from './webhook.ts'
