/** Read before write: jobs repeat and overtake each other, and the index converges to the newest version. */
import { createChokaQ, type Storage } from 'chokaq'
import { sqlite } from 'chokaq/sqlite'
import { createFakeRuntime, drain, type FakeRuntime } from 'chokaq/testing'
import { createWorker } from 'chokaq/worker'
import { whenStarted, type Print } from '../start.ts'
import { indexDocument } from './contract.ts'
import { indexHandler, type SearchIndex } from './handler.ts'

/** Stands for the search engine: it loses its first answer. */
export class MemoryIndex implements SearchIndex {
  readonly documents = new Map<string, { version: number; text: string }>()
  writes = 0

  async version(documentId: string): Promise<number | undefined> {
    return this.documents.get(documentId)?.version
  }

  async put(documentId: string, document: { version: number; text: string }, ifVersion?: number): Promise<void> {
    if (this.documents.get(documentId)?.version !== ifVersion) throw new Error('the document has changed meanwhile')
    this.documents.set(documentId, document)
    this.writes += 1
    if (this.writes === 1) throw new Error('the connection broke after the write')
  }
}

/** On virtual time, so that nobody waits for retries. */
export async function main(
  storage: Storage,
  print: Print = console.log,
  runtime: FakeRuntime = createFakeRuntime(),
): Promise<void> {
  const chokaq = createChokaQ({ storage, runtime })
  const index = new MemoryIndex()
  // The older version is late: it comes when the newer one is done.
  await chokaq.enqueue(indexDocument, { documentId: 'doc-1', version: 1, text: 'draft' }, { delay: '1h' })
  await chokaq.enqueue(indexDocument, { documentId: 'doc-1', version: 2, text: 'final' })
  const worker = createWorker({ chokaq, handlers: [indexHandler(index)] })
  const attempts = await drain(worker, { runtime })
  const there = index.documents.get('doc-1')
  print(`${attempts} attempts, ${index.writes} write, the index says "${there?.text}"`)

  await runtime.complete(worker.stop())
  await chokaq.close()
}

whenStarted(import.meta.url, (path) => main(sqlite(path)))
