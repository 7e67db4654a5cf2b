// A storage under the engine's tests: how to open a fresh one.
import type { Storage } from 'chokaq'

export interface OpenedStorage {
  /** Opened twice, it is two clients of the same data where `isShared` says so. */
  readonly storage: Storage
  /** The file, where there is one. */
  readonly path: string
  remove(): void
}

export interface StorageCase {
  readonly name: string
  /** A second client sees the same data. */
  readonly isShared: boolean
  /** How virtual time lets it catch up; left out where one turn of the host's loop is enough. */
  readonly yieldToHost?: () => Promise<void>
  open(): OpenedStorage
}
