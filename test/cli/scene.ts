// A folder with a database in it, jobs in every pillar, and files that a user would write.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createChokaQ, defineJob, type ChokaQ } from 'chokaq'
import { sqlite } from 'chokaq/sqlite'
import { createWorker, defineHandler, FatalError } from 'chokaq/worker'
import { z } from 'zod'

export const by = { actor: 'setup', note: '' }

export const resize = defineJob({ type: 'image.resize.v1', payload: z.object({ id: z.string() }) })
export const charge = defineJob({
  type: 'payment.charge.v1',
  payload: z.object({ order: z.string(), cents: z.int() }),
  key: (p) => p.order,
  duplicateWindow: '1d',
})
export const ship = defineJob({
  type: 'parcel.ship.v1',
  payload: z.object({ order: z.string() }),
  key: (p) => p.order,
  duplicateWindow: '1d',
  allowRaw: true,
})

export const handlers = [
  defineHandler(resize, {
    sideEffects: 'none',
    async run(p) {
      if (p.id.startsWith('bad')) throw new FatalError(`cannot read ${p.id}`)
    },
  }),
  defineHandler(charge, {
    sideEffects: 'unguarded',
    whenInterrupted: 'review',
    async run(p) {
      if (p.order.startsWith('bad')) throw new FatalError(`declined ${p.order}`)
    },
  }),
  defineHandler(ship, { sideEffects: 'unique-constraint', whenInterrupted: 'resume', run: async () => undefined }),
]

export interface Scene {
  readonly cwd: string
  readonly db: string
  readonly chokaq: ChokaQ
  /** Runs what is due until nothing is left. */
  work(): Promise<void>
  write(name: string, text: string): string
  close(): Promise<void>
}

/** With the types registered, as after the first start of a worker. */
export async function openScene(): Promise<Scene> {
  const cwd = mkdtempSync(join(tmpdir(), 'chokaq-cli-'))
  const db = join(cwd, 'chokaq.db')
  const chokaq = createChokaQ({ storage: sqlite(db) })
  const work = async (): Promise<void> => {
    const worker = createWorker({ chokaq, handlers })
    while ((await worker.tick()) > 0);
    await worker.stop()
  }
  await work()
  return {
    cwd,
    db,
    chokaq,
    work,
    write(name, text) {
      const path = join(cwd, name)
      writeFileSync(path, text)
      return path
    },
    async close() {
      await chokaq.close()
      rmSync(cwd, { recursive: true, force: true })
    },
  }
}

/** What a user's file with contracts and handlers looks like; `zod` is imported by its path, the folder has no packages. */
export function userFile(handlersSource: string): string {
  const zodPath = JSON.stringify(new URL('../../node_modules/zod/index.js', import.meta.url).pathname)
  return [
    `import { defineJob } from 'chokaq'`,
    `import { defineHandler, FatalError } from 'chokaq/worker'`,
    `import { z } from ${zodPath}`,
    handlersSource,
  ].join('\n')
}

export const resizeFile = userFile(`
interface Sized { id: string }
export const resize = defineJob({ type: 'image.resize.v1', payload: z.object({ id: z.string() }) })
export const handlers = [
  defineHandler(resize, {
    sideEffects: 'none',
    async run(p: Sized, ctx) {
      ctx.log('resizing ' + p.id)
      if (p.id.startsWith('bad')) throw new FatalError('cannot read ' + p.id)
    },
  }),
]
`)
