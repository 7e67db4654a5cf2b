/**
 * Reads for people in a thread of their own. A statement of SQLite runs to its end in the thread that asked for it, so a
 * long list of a big file would stop the event loop of the application around it, its workers' beats included.
 *
 * The thread is started with the first read, has a read-only connection, and answers one call after the other. It keeps
 * no process alive but while somebody waits for it. One that dies takes the calls it had with it and is started again
 * with the next call. Where there can be none (a database in memory, another driver, a bundle that left the thread's
 * file behind) the reads are those of the storage itself.
 */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { ChokaQError, type ErrorCode, type ErrorDetails } from '../../core/errors.ts'
import { type Inspector, type InspectorReader, inspectorReads, type InspectorReads } from '../../core/inspector.ts'
import type { Runtime } from '../../core/runtime.ts'
import { memoryPath } from './connection.ts'
import { betterSqlite3, type SqliteDriver } from './database.ts'

export interface ReaderThreadOptions {
  readonly path: string
  readonly driver: SqliteDriver
  readonly runtime: Runtime
  readonly deadlineMs: number
  /** The storage's own: nothing is read before it has looked at the tables. */
  readonly ready: () => Promise<unknown>
  /** The way to read where there can be no thread. */
  readonly direct: Inspector
}

export interface ThreadCall {
  readonly id: number
  readonly method: (typeof inspectorReads)[number]
  readonly args: readonly unknown[]
  /** By the clock of the process: a thread has none of its own. */
  readonly nowMs: number
}

export type ThreadAnswer =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly code: ErrorCode; readonly details: unknown }

interface Waiting {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/** Calls that may wait for the thread. More are refused: whoever made them has given up long ago. */
const maxWaiting = 200

export class ReaderThread implements InspectorReader {
  readonly reads: InspectorReads
  readonly #options: ReaderThreadOptions
  readonly #waiting = new Map<number, Waiting>()
  #worker: Worker | undefined
  #lastId = 0
  #isClosed = false

  constructor(options: ReaderThreadOptions) {
    this.#options = options
    const start = startOf(options)
    this.reads = start === undefined ? options.direct : this.#proxy(start)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const worker = this.#worker
    this.#fail(new ChokaQError('CHOKAQ_STORAGE_CLOSED', { call: 'inspector' }))
    await worker?.terminate()
  }

  #proxy(start: () => Worker): InspectorReads {
    const methods = inspectorReads.map((method) => {
      const call = (...args: readonly unknown[]): Promise<unknown> => this.#call(start, method, args)
      return [method, call] as const
    })
    return Object.fromEntries(methods) as unknown as InspectorReads
  }

  async #call(start: () => Worker, method: ThreadCall['method'], args: readonly unknown[]): Promise<unknown> {
    await this.#options.ready()
    if (this.#isClosed) throw new ChokaQError('CHOKAQ_STORAGE_CLOSED', { call: `inspector.${method}` })
    if (this.#waiting.size >= maxWaiting) {
      throw new ChokaQError('CHOKAQ_STORAGE_BUSY', { waitedMs: this.#options.deadlineMs })
    }
    const worker = (this.#worker ??= this.#listenTo(start()))
    this.#lastId += 1
    const call: ThreadCall = { id: this.#lastId, method, args, nowMs: this.#options.runtime.clock.nowMs() }
    return new Promise((resolve, reject) => {
      this.#waiting.set(call.id, { resolve, reject })
      worker.ref()
      worker.postMessage(call)
    })
  }

  #listenTo(worker: Worker): Worker {
    const failed = (problem: string): void => {
      if (this.#worker === worker) this.#fail(new ChokaQError('CHOKAQ_STORAGE_FAILED', { problem }))
    }
    worker.on('message', (answer: ThreadAnswer) => {
      this.#settle(answer)
    })
    worker.on('error', (error: unknown) => {
      failed(`the thread that reads has died: ${error instanceof Error ? error.message : String(error)}`)
    })
    worker.on('exit', () => {
      failed('the thread that reads has ended')
    })
    return worker
  }

  #settle(answer: ThreadAnswer): void {
    const waiting = this.#waiting.get(answer.id)
    this.#waiting.delete(answer.id)
    if (this.#waiting.size === 0) this.#worker?.unref()
    if ('code' in answer) waiting?.reject(new ChokaQError(answer.code, answer.details as ErrorDetails<ErrorCode>))
    else waiting?.resolve(answer.value)
  }

  #fail(error: ChokaQError): void {
    this.#worker = undefined
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}

/** How the thread is started; undefined where there can be none. */
function startOf({ path, driver }: ReaderThreadOptions): (() => Worker) | undefined {
  if (path === memoryPath || driver !== betterSqlite3) return undefined
  const here = import.meta.url
  const options = { workerData: { path }, execArgv: [], stdin: false }
  try {
    if (here.endsWith('.ts')) {
      // From source, in development: the loader is ours, whatever loads the process.
      const jiti = createRequire(here).resolve('jiti')
      const file = fileURLToPath(new URL('./reader-thread.ts', here))
      const text = `require(${JSON.stringify(jiti)}).createJiti(${JSON.stringify(file)}).import(${JSON.stringify(file)})`
      return () => new Worker(text, { ...options, eval: true })
    }
    // By the package's name, because nobody knows into which file this one was built.
    const manifest = createRequire(here).resolve('chokaq/package.json')
    const file = join(manifest, '..', 'dist', 'storage', 'sqlite', 'reader-thread.js')
    return existsSync(file) ? () => new Worker(file, options) : undefined
  } catch {
    return undefined
  }
}
