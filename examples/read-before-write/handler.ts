import { defineHandler, type Handler } from 'chokaq/worker'
import { indexDocument } from './contract.ts'

export interface SearchIndex {
  version(documentId: string): Promise<number | undefined>
  /** Refuses where the index has moved on since the read: the read alone would not be enough. */
  put(documentId: string, document: { version: number; text: string }, ifVersion: number | undefined): Promise<void>
}

export function indexHandler(index: SearchIndex): Handler {
  return defineHandler(indexDocument, {
    sideEffects: 'read-before-write',
    whenInterrupted: 'resume',
    async run({ documentId, version, text }) {
      const there = await index.version(documentId)
      // A repeat, or a job that was overtaken by a newer version: the state is right already.
      if (there !== undefined && there >= version) return
      await index.put(documentId, { version, text }, there)
    },
  })
}
