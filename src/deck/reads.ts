/**
 * What the Deck reads, each with a deadline. Where the storage lends a reader of its own (SQLite: a thread, PostgreSQL:
 * connections of its own), nothing of the host waits behind the Deck.
 */
import type { Inspector } from '../core/inspector.ts'
import { withDeadline } from '../engine/deadline.ts'
import { partsOf } from '../engine/parts.ts'
import type { DeckConfig } from './options.ts'

export type DeckReads = Pick<
  Inspector,
  'get' | 'list' | 'count' | 'queues' | 'workers' | 'jobTypes' | 'audit' | 'stats' | 'metrics' | 'marker' | 'effects'
>

export interface OpenedReads {
  readonly reads: DeckReads
  close(): Promise<void>
}

export function openReads({ chokaq, queryDeadlineMs }: DeckConfig): OpenedReads {
  const { driver, runtime } = partsOf(chokaq)
  const reads = new Proxy(driver.inspector, {
    get(inspector, name) {
      const method: unknown = Reflect.get(inspector, name, inspector)
      if (typeof method !== 'function') return method
      const call = method.bind(inspector) as (...args: readonly unknown[]) => Promise<unknown>
      return (...args: readonly unknown[]) =>
        withDeadline(runtime.scheduler, queryDeadlineMs, `inspector.${String(name)}`, call(...args))
    },
  })
  return { reads, close: async () => undefined }
}
