// What a web app pays for importing 'chokaq': contracts and the client, no handler, no driver, no worker.
import { gzipSync } from 'node:zlib'
import { join } from 'node:path'
import { build, type Rolldown } from 'vite'
import { beforeAll, describe, expect, it } from 'vitest'
import { root } from './packed-package.ts'

const conditions = ['chokaq-source', 'node', 'import', 'module', 'default']
const entry = 'virtual:producer'
const maxGzipBytes = 30_000

/** A bundle with every dependency in it, minified, of the sources, so that its modules have names. */
async function bundleOf(text: string): Promise<Rolldown.OutputChunk> {
  const result = await build({
    configFile: false,
    logLevel: 'silent',
    root,
    resolve: { alias: [{ find: /^chokaq$/, replacement: join(root, 'src/index.ts') }], conditions },
    ssr: { noExternal: true, resolve: { conditions } },
    build: { ssr: true, write: false, minify: true, target: 'node20', rolldownOptions: { input: entry } },
    plugins: [
      {
        name: 'producer',
        resolveId: (id) => (id === entry ? id : undefined),
        load: (id) => (id === entry ? text : undefined),
      },
    ],
  })
  const chunks = [result].flat().flatMap((each) => ('output' in each ? each.output : []))
  const [chunk] = chunks
  if (chunk?.type !== 'chunk' || chunks.length !== 1) throw new RangeError(`the bundle has ${chunks.length} files`)
  return chunk
}

describe('a producer', () => {
  let chunk: Rolldown.OutputChunk
  let modules: readonly string[]

  beforeAll(async () => {
    chunk = await bundleOf(`export { createChokaQ, defineJob } from 'chokaq'`)
    // 'src/core/job.ts', 'node_modules/uuid/…', wherever node_modules is
    modules = chunk.moduleIds.filter((id) => id !== entry).map((id) => id.replace(/^.*\/(?=(src|node_modules)\/)/, ''))
  })

  it('gets the enqueue stage and nothing else of the engine', () => {
    const other = modules.filter(
      (path) => !/^src\/core\//.test(path) && !/^src\/engine\/(enqueue\/)?[a-z-]+\.ts$/.test(path),
    )
    expect(other.filter((path) => !path.startsWith('node_modules/uuid/'))).toEqual([])
    expect(modules.filter((path) => /worker|in-hand|persist/.test(path))).toEqual([])
    expect(modules).toContain('src/engine/enqueue/enqueuer.ts')
  })

  it('gets no handler and no driver', () => {
    const unwanted = /core\/(handler|outcome|boot-check|effect|provider|ledger)|storage|sqlite|postgres/
    expect(modules.filter((path) => unwanted.test(path))).toEqual([])
    for (const word of ['better-sqlite3', 'chokaq_jobs_hot', 'BEGIN IMMEDIATE', 'whenInterrupted', 'process.env']) {
      expect([word, chunk.code.includes(word)]).toEqual([word, false])
    }
  })

  it(`pays at most ${maxGzipBytes / 1_000} kB, gzipped`, () => {
    expect(gzipSync(chunk.code).length).toBeLessThanOrEqual(maxGzipBytes)
  })

  it('pays less for contracts alone', async () => {
    const contracts = await bundleOf(`export { defineJob } from 'chokaq'`)
    expect(contracts.moduleIds.filter((id) => id.includes('/engine/'))).toEqual([])
    expect(gzipSync(contracts.code).length).toBeLessThan(gzipSync(chunk.code).length / 2)
  })
})
