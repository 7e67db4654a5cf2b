/** A group of cases: names as sentences, in the order in which they run. */
import type { Scene } from './scene.ts'

export type CaseBody = (scene: Scene) => Promise<void>

export interface CaseGroup {
  readonly title: string
  readonly cases: Readonly<Record<string, CaseBody>>
}

/** Cases made from a table: one per row, named by the row. */
export function fromTable<T>(
  rows: readonly T[],
  nameOf: (row: T) => string,
  body: (scene: Scene, row: T) => Promise<void>,
): Record<string, CaseBody> {
  return Object.fromEntries(rows.map((row) => [nameOf(row), (scene: Scene) => body(scene, row)]))
}
