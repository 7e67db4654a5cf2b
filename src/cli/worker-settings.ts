/** The settings of a user's file, resolved the way a worker resolves them. */
import { resolveClientConfig, resolveWorkerConfig, type ClientConfig, type WorkerConfig } from '../core/config.ts'
import { handlerOf, type ResolvedHandler } from '../core/handler.ts'
import type { WorkFile } from './user-file.ts'

export interface ResolvedWorkFile {
  readonly handlers: readonly ResolvedHandler[]
  readonly worker: WorkerConfig
  readonly client: ClientConfig
}

export function resolveWorkFile({ handlers, worker, client }: WorkFile): ResolvedWorkFile {
  return {
    handlers: handlers.map(handlerOf),
    worker: resolveWorkerConfig(worker, ['queues', 'middleware', 'name']),
    client: resolveClientConfig(client),
  }
}
