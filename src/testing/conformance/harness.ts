/**
 * What the conformance suite needs to know of a storage and of a test runner. Nothing here imports either: a driver
 * brings its harness, and the runner's functions are handed in.
 */
import type { MarkerRow } from '../../core/inspector.ts'
import type { StoredFailure } from '../../core/failure.ts'
import type { StorageDriver } from '../../core/storage.ts'
import type { FakeRuntime } from '../fake-runtime.ts'

export interface Matchers {
  readonly not: Matchers
  toBe(expected: unknown): void
  toBeDefined(): void
  toBeGreaterThan(expected: number): void
  toBeGreaterThanOrEqual(expected: number): void
  toBeLessThan(expected: number): void
  toBeLessThanOrEqual(expected: number): void
  toBeUndefined(): void
  toContain(expected: unknown): void
  toEqual(expected: unknown): void
  toHaveLength(expected: number): void
  toMatch(expected: RegExp | string): void
  toMatchObject(expected: object): void
}

export type Expect = (actual: unknown, message?: string) => Matchers

/** Of vitest, or of any runner whose functions look like this. */
export interface TestApi {
  readonly describe: (name: string, body: () => void) => void
  readonly test: ((name: string, body: () => Promise<void> | void) => void) & {
    readonly skip: (name: string, body: () => Promise<void> | void) => void
  }
  readonly expect: Expect
}

/** A marker written past the driver: what no worker that keeps R1 to R3 could have written. */
export interface PlantedMarker extends MarkerRow {
  readonly failure: StoredFailure | null
}

/** One fresh, empty storage. */
export interface ConformanceSubject {
  readonly driver: StorageDriver
  /** Another connection to the same data; left out where the storage has none. */
  readonly second?: () => Promise<StorageDriver>
  /** Moves the storage's clock, and the runtime's with it; left out where they are one. */
  readonly elapse?: (ms: number) => Promise<void>
  /** The storage's clock; left out where that is the runtime's. */
  readonly nowMs?: () => Promise<number>
  plantMarker(marker: PlantedMarker): Promise<void>
  cleanup(): Promise<void>
}

export interface ConformanceSkip {
  /** The full name of a case, as the runner prints it below its group. */
  readonly case: string
  /** Why this storage cannot pass it, and why that is no harm. */
  readonly reason: string
}

export interface ConformanceHarness {
  readonly name: string
  readonly api: TestApi
  /** How the runtime of a case lets the storage catch up; left out where one turn of the host's loop is enough. */
  readonly yieldToHost?: () => Promise<void>
  create(runtime: FakeRuntime): Promise<ConformanceSubject>
  readonly skip?: readonly ConformanceSkip[]
}
