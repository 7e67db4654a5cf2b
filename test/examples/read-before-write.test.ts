import { describe, expect, it } from 'vitest'
import { indexDocument } from '../../examples/read-before-write/contract.ts'
import { indexHandler, type SearchIndex } from '../../examples/read-before-write/handler.ts'
import { main, MemoryIndex } from '../../examples/read-before-write/main.ts'
import { storages } from './storages.ts'
import { never, TwoProcesses } from './two-processes.ts'

const final = { documentId: 'd1', version: 2, text: 'final' }

describe.each(storages)('examples/read-before-write on $name', ({ open }) => {
  it('prints what happened', async () => {
    const { storage, runtime } = open()
    const lines: string[] = []
    await main(storage, (line) => lines.push(line), runtime)
    expect(lines).toEqual(['3 attempts, 1 write, the index says "final"'])
  })

  it('writes once where the process dies after the write', async () => {
    const both = new TwoProcesses(open())
    const { id } = await both.chokaq.enqueue(indexDocument, final)
    const documents = new MemoryIndex()
    const answersNever: SearchIndex = {
      version: (documentId) => documents.version(documentId),
      put: (documentId, document, ifVersion) =>
        documents.put(documentId, document, ifVersion).then(
          () => undefined,
          () => never(),
        ),
    }
    await both.crash([indexHandler(answersNever)], () => documents.writes > 0)
    await both.goOn([indexHandler(documents)])
    expect(await both.chokaq.jobs.get(id)).toMatchObject({ state: 'completed', attempt: 2 })
    expect([documents.writes, documents.documents.get('d1')]).toEqual([1, { version: 2, text: 'final' }])
    await both.close()
  })

  it('does not put an old version over a new one that came between read and write', async () => {
    const both = new TwoProcesses(open())
    await both.chokaq.enqueue(indexDocument, { ...final, version: 1, text: 'draft' })
    const documents = new MemoryIndex()
    documents.writes = 1
    let reads = 0
    const overtaken: SearchIndex = {
      async version(documentId) {
        const there = await documents.version(documentId)
        reads += 1
        if (reads === 1) documents.documents.set(documentId, { version: 2, text: 'final' })
        return there
      },
      put: (documentId, document, ifVersion) => documents.put(documentId, document, ifVersion),
    }
    await both.goOn([indexHandler(overtaken)])
    expect([reads, documents.documents.get('d1')]).toEqual([2, { version: 2, text: 'final' }])
    await both.close()
  })
})
