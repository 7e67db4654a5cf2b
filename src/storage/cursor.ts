/** Keyset cursors: where a list stopped, opaque to the caller and checked on the way back. */
import { ChokaQError } from '../core/errors.ts'

export interface ListPosition {
  readonly createdAtMs: number
  readonly id: string
}

export function encodeCursor({ createdAtMs, id }: ListPosition): string {
  return Buffer.from(JSON.stringify([createdAtMs, id]), 'utf8').toString('base64url')
}

/** Throws CHOKAQ_CURSOR_INVALID for anything but what `encodeCursor` made. */
export function decodeCursor(cursor: string): ListPosition {
  const value = parsed(cursor)
  if (Array.isArray(value) && value.length === 2) {
    const [createdAtMs, id] = value as readonly unknown[]
    if (Number.isSafeInteger(createdAtMs) && typeof id === 'string') {
      const position = { createdAtMs: createdAtMs as number, id }
      // Many texts decode to the same bytes; only the one we made counts.
      if (encodeCursor(position) === cursor) return position
    }
  }
  throw new ChokaQError('CHOKAQ_CURSOR_INVALID', { value: cursor.slice(0, 100) })
}

function parsed(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')) as unknown
  } catch {
    return undefined
  }
}
