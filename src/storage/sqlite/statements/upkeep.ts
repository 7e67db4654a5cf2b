/** How large the file is, what of it is free, and how far its log has grown. */
import { statSync } from 'node:fs'
import type { Upkeep } from '../../../core/inspector.ts'
import type { Session } from '../session.ts'
import type { Transaction } from '../write-transaction.ts'

export function readUpkeep({ session, nowMs }: Transaction): Upkeep {
  const path = session.all<{ readonly name: string; readonly file: string }>('PRAGMA database_list')[0]?.file ?? ''
  const pageBytes = pragma(session, 'page_size')
  const file = {
    sizeBytes: pragma(session, 'page_count') * pageBytes,
    freeBytes: pragma(session, 'freelist_count') * pageBytes,
    logBytes: statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0,
  }
  const none = { tables: [], oldestSnapshotMs: undefined, listenerCount: undefined }
  return { ...none, nowMs, file: path === '' ? undefined : file }
}

function pragma(session: Session, name: 'page_size' | 'page_count' | 'freelist_count'): number {
  return session.get<Readonly<Record<string, number>>>(`PRAGMA ${name}`)?.[name] ?? 0
}
