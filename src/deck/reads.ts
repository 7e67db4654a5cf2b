/**
 * What the Deck reads, each with a deadline. Where the storage lends a reader of its own (SQLite: a thread, PostgreSQL:
 * connections), nothing of the host waits behind the Deck.
 */
import { inspectorReads, type InspectorReader, type InspectorReads } from '../core/inspector.ts'
import { withDeadline } from '../engine/deadline.ts'
import { partsOf } from '../engine/parts.ts'
import type { DeckConfig } from './options.ts'

export type DeckReads = InspectorReads

export function openReads({ chokaq, queryDeadlineMs }: DeckConfig): InspectorReader {
  const { driver, runtime } = partsOf(chokaq)
  // Nothing is opened before the first request.
  let opened: InspectorReader | undefined
  const reader = (): InspectorReader =>
    (opened ??= driver.openReader?.({ deadlineMs: queryDeadlineMs }) ?? {
      reads: driver.inspector,
      close: async () => undefined,
    })
  const methods = inspectorReads.map((name) => {
    const call = (...args: readonly unknown[]): Promise<unknown> => {
      const { reads } = reader()
      const method = reads[name] as (...args: readonly unknown[]) => Promise<unknown>
      return withDeadline(runtime.scheduler, queryDeadlineMs, `inspector.${name}`, method.apply(reads, [...args]))
    }
    return [name, call] as const
  })
  return {
    reads: Object.fromEntries(methods) as unknown as InspectorReads,
    close: async () => opened?.close(),
  }
}
