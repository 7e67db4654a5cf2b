import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createChokaQ, defineJob } from 'chokaq'
import { sqlite } from 'chokaq/sqlite'
import { createWorker, defineEffect, defineHandler, noKey, stripe, type Handler, type Provider } from 'chokaq/worker'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { cli, type CliResult } from './fake-io.ts'
import { resizeFile, userFile } from './scene.ts'

let cwd: string
let written = 0
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'chokaq-cli-'))
})
afterEach(() => {
  rmSync(cwd, { recursive: true, force: true })
})

function run(command: readonly string[], text: string, ...flags: string[]): Promise<CliResult> {
  // A name of its own: a module is loaded once in a process.
  const file = `work-${(written += 1)}.ts`
  writeFileSync(join(cwd, file), text)
  return cli([...command, file, ...flags], { cwd })
}

const keyed = (type: string): string =>
  `defineJob({ type: '${type}', payload: z.object({ id: z.string() }), key: (p: { id: string }) => p.id, duplicateWindow: '60d' })`
const fourHandlers = userFile(`
const run = async () => undefined
export const handlers = [
  defineHandler(defineJob({ type: 'plain.v1', payload: z.object({}) }), { sideEffects: 'none', run }),
  defineHandler(${keyed('same.v1')}, { sideEffects: 'same-transaction', whenInterrupted: 'resume', run }),
  defineHandler(${keyed('unique.v1')}, { sideEffects: 'unique-constraint', whenInterrupted: 'resume', run }),
  defineHandler(${keyed('bare.v1')}, { sideEffects: 'unguarded', whenInterrupted: 'review', run }),
]
`)

describe('checklist', () => {
  it('shows what each type declares and the level that follows', async () => {
    const { code, json } = await run(['checklist'], fourHandlers, '--json')
    expect(code).toBe(0)
    const { types } = json[0] as { types: { type: string; level: string; key: string; observed: null }[] }
    expect(types.map(({ type, level, key }) => [type, key, level])).toEqual([
      ['plain.v1', 'none', 'at least once'],
      ['same.v1', 'payload', 'exactly once (same database)'],
      ['unique.v1', 'payload', 'at least once'],
      ['bare.v1', 'payload', 'at most once + review'],
    ])
    expect(types[0]).toMatchObject({ declared: 'at least once', observed: null, verified: null })
  })

  it('prints a table, and says what nobody observed or verified', async () => {
    const { stdout } = await run(['checklist'], fourHandlers)
    expect(stdout).toMatch(/^TYPE .* LEVEL .* OBSERVED +VERIFIED$/m)
    expect(stdout).toMatch(
      /^bare\.v1 +of payload, in bare +unguarded +60d +review +at most once \+ review +60d 20h 15m 38s +not observed +not verified$/m,
    )
  })

  it('shows what the database saw, and lowers the level where a call took no key along', async () => {
    const chokaq = createChokaQ({ storage: sqlite(join(cwd, 'chokaq.db')) })
    const job = defineJob({
      type: 'pay.v1',
      payload: z.object({ id: z.string() }),
      key: (p) => p.id,
      duplicateWindow: '60d',
    })
    const handlerWith = (provider: Provider): Handler =>
      defineHandler(job, {
        sideEffects: 'effects',
        effects: {
          charge: defineEffect<{ id: string }, void>({ name: 'charge', provider, run: async () => undefined }),
        },
        whenInterrupted: 'resume',
        async run(p, ctx) {
          await ctx.effects.charge(p)
        },
      })
    const work = async (id: string, provider: Provider): Promise<void> => {
      await chokaq.enqueue(job, { id })
      const worker = createWorker({ chokaq, handlers: [handlerWith(provider)] })
      await worker.tick()
      await worker.stop()
    }
    const file = userFile(`
      import { stripe, defineEffect } from 'chokaq/worker'
      const charge = defineEffect({ name: 'charge', provider: stripe, run: async () => undefined })
      export const handlers = [defineHandler(${keyed('pay.v1')}, { sideEffects: 'effects', effects: { charge }, whenInterrupted: 'resume', run: async () => undefined })]
    `)
    try {
      await work('p1', stripe)
      expect((await run(['checklist'], file)).stdout).toMatch(
        /effectively once \(provider, 24 h\) .* charge: 1 done, all with a key +not verified$/m,
      )
      await work('p2', noKey('stripe, before the keys'))
    } finally {
      await chokaq.close()
    }
    const { json } = await run(['checklist'], file, '--json')
    expect(json).toMatchObject([
      {
        types: [
          {
            declared: 'effectively once (provider, 24 h)',
            level: 'at most once + review',
            observed: [{ effect: 'charge', callCount: 2, keyedCount: 1, doubledCount: 0 }],
            verified: null,
          },
        ],
      },
    ])
    expect(await run(['checklist'], file, '--db', 'nowhere.db')).toMatchObject({ code: 5 })
  })

  it('ends with 1 where a handler cannot be loaded', async () => {
    expect(await run(['checklist'], 'throw new Error("no")')).toMatchObject({ code: 1 })
    const invalid = userFile(
      `export const handlers = [defineHandler(${keyed('x.v1')}, { run: async () => undefined })]`,
    )
    const result = await run(['checklist'], invalid)
    expect(result.code).toBe(1)
    expect(result.stderr).toContain('Where is the key enforced?')
  })
})

describe('config check', () => {
  it('finds nothing in good settings', async () => {
    expect(await run(['config', 'check'], resizeFile)).toMatchObject({
      code: 0,
      stdout: '1 handler: 0 errors, 0 warnings\n',
    })
  })

  it('ends with 1 for an error, and with 0 for a warning', async () => {
    const error = await run(['config', 'check'], `${resizeFile}\nexport const worker = { fenceAfter: '29s' }`)
    expect(error.code).toBe(1)
    expect(error.stdout).toMatch(/^error fence-before-dead: worker: the self-fence \(29s\)/)
    const warning = await run(
      ['config', 'check'],
      `${resizeFile}\nexport const worker = { killDeadline: '10s' }`,
      '--json',
    )
    expect(warning).toMatchObject({ code: 0, json: [{ refusals: [], warnings: [{ rule: 'shutdown-before-kill' }] }] })
  })

  it('knows waivers, the options of the client, and unknown options', async () => {
    const waived = `export const worker = { fenceAfter: '29s', waive: { 'fence-before-dead': 'one worker only' } }`
    const result = await run(['config', 'check'], `${resizeFile}\n${waived}`)
    expect(result).toMatchObject({ code: 0 })
    expect(result.stdout).toContain('Waived: one worker only')
    expect(await run(['config', 'check'], `${resizeFile}\nexport const client = { resendFor: '400d' }`)).toMatchObject({
      code: 1,
    })
    expect(await run(['config', 'check'], `${resizeFile}\nexport const worker = { fenceAftre: '9s' }`)).toMatchObject({
      code: 2,
    })
  })
})
