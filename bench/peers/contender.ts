/** What the bench asks of everyone: put jobs in, run them, tell when a handler is called. */

/** What is drained. */
export type Variant = 'plain' | 'keep 0' | 'keyed'

export interface Place {
  /** A database of its own, empty at the start. */
  readonly url: string
  readonly redisPort: number
  readonly variant: Variant
}

export interface Contender {
  /** Makes the tables and whatever else is made once; not measured. */
  open(): Promise<void>
  /** In calls of a thousand; each is durable before the next one starts. */
  enqueueMany(count: number): Promise<void>
  /** Resolves when the job is durable. */
  enqueueOne(): Promise<void>
  /** Starts a worker: `onJobs` is called by the handler with the number of jobs of this call. */
  work(onJobs: (count: number) => void): Promise<void>
  /** Ends the worker after what it has begun. */
  rest(): Promise<void>
  /** Jobs that still wait or run. */
  leftCount(): Promise<number>
  close(): Promise<void>
}

export const contenderNames = ['chokaq', 'graphile-worker', 'pg-boss', 'bullmq on redis', 'bullmq on postgres'] as const
export type ContenderName = (typeof contenderNames)[number]

/** The same connections for everyone; ChokaQ's four for outcomes, heartbeat and LISTEN are among them. */
export const connectionCount = 10

export const bulkCount = 1_000

/** The payload of job number `n`, which is its key, too, where there is one. */
export function payloadOf(n: number): {
  readonly invoiceId: string
  readonly amountCents: number
  readonly email: string
} {
  return { invoiceId: `inv_${n}`, amountCents: 1_299, email: 'a@example.com' }
}

/** Payloads that never repeat, in this process or in another one. */
export class Payloads {
  #next = process.pid * 10_000_000

  one(): ReturnType<typeof payloadOf> {
    this.#next += 1
    return payloadOf(this.#next)
  }

  chunksOf(count: number): readonly ReturnType<typeof payloadOf>[][] {
    const chunks: ReturnType<typeof payloadOf>[][] = []
    for (let from = 0; from < count; from += bulkCount) {
      chunks.push(Array.from({ length: Math.min(bulkCount, count - from) }, () => this.one()))
    }
    return chunks
  }
}
