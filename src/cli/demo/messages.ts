/** What the processes of the demo tell each other. */
import type { ChokaQEvent } from '../../core/events.ts'
import type { ShopSetup } from './shop.ts'

/** Given to a worker process when it starts. */
export interface WorkerSetup {
  /** Such as 'worker-b.3': the third process in place b. */
  readonly name: string
  readonly shop: ShopSetup
  readonly providerUrl: string
  readonly isProtected: boolean
}

/** Given to the provider process when it starts. */
export interface ProviderSetup {
  readonly seed: number
  readonly ledger: string
  /** One JSON line per request that ended: what the provider answered, and who had hung up. */
  readonly requests: string
}

export type ReportedEvent = Extract<
  ChokaQEvent,
  {
    readonly name:
      | 'job.rescued'
      | 'job.dead'
      | 'job.lease_lost'
      | 'worker.declared_dead'
      | 'worker.warning'
      | 'worker.fenced'
      | 'storage.failed'
      | 'effect.outcome'
  }
>

export type FromWorker =
  | { readonly kind: 'ready'; readonly workerId: string }
  | { readonly kind: 'begin'; readonly jobId: string; readonly type: string; readonly attempt: number }
  | { readonly kind: 'end'; readonly jobId: string; readonly attempt: number }
  | { readonly kind: 'event'; readonly event: ReportedEvent }

export type FromProvider = { readonly kind: 'listening'; readonly port: number }

export type ToChild = { readonly kind: 'stop' }
