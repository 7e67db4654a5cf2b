/**
 * A bad row costs its neighbours nothing: a batch that the database refuses because of a row's content, or because a row
 * waits for somebody's lock, is cut in halves until the row is alone with its error. The halves are tried in order.
 */
import { ChokaQError } from '../../core/errors.ts'
import { troubleOf } from './postgres-errors.ts'

/** Whether an error, as transactions.ts translated it, can be one row's fault. */
export function isRowsFault(error: unknown): boolean {
  const trouble = troubleOf(error instanceof ChokaQError ? error.cause : error)
  return trouble === 'row' || trouble === 'locked' || trouble === 'conflict'
}

export async function bisected<T, V>(
  rows: readonly T[],
  attempt: (rows: readonly T[], isWhole: boolean) => Promise<readonly V[]>,
  refused: (row: T, error: Error) => V,
  isWhole = true,
): Promise<readonly V[]> {
  if (rows.length === 0) return []
  try {
    return await attempt(rows, isWhole)
  } catch (error) {
    if (!(error instanceof Error) || !isRowsFault(error)) throw error
    const [only] = rows
    if (rows.length === 1 && only !== undefined) return [refused(only, error)]
    const middle = rows.length >> 1
    const first = await bisected(rows.slice(0, middle), attempt, refused, false)
    return [...first, ...(await bisected(rows.slice(middle), attempt, refused, false))]
  }
}
