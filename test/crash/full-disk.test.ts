// K26 on a disk that is full: a real one, of a few megabytes, that the test fills with other bytes. What the storage cannot
// keep it refuses, what runs goes on, and an outcome waits in its worker until there is room.
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { createChokaQ, defineJob, type ChokaQ, type ChokaQEvent, type Storage } from 'chokaq'
import { sqlite, type SqliteDatabase } from 'chokaq/sqlite'
import { createWorker, defineHandler, type Worker } from 'chokaq/worker'
import { z } from 'zod'
import { betterSqlite3 } from '../../src/storage/sqlite/database.ts'
import { partsOf } from '../../src/engine/parts.ts'
import { isServerGiven, stopSharedServer } from '../postgres/server.ts'
import { openStorage } from './fixtures/open-storage.ts'
import { openUserFile } from './fixtures/user-sqlite.ts'
import { roomyLeaseTimes } from './fixtures/work.ts'
import { smallDisk } from './small-disk.ts'
import { allOf } from './snapshot.ts'
import { crashStorages, sqliteFile } from './storages.ts'
import { pass, until } from './until.ts'

const note = defineJob({
  type: 'note.v1',
  payload: z.object({ op: z.string(), data: z.string().optional() }),
  result: z.object({ data: z.string() }),
})
/** Longer than a worker without a beat may go on. */
const fullMs = 2 * roomyLeaseTimes.fenceAfter
const backMs = 15_000
const limitMs = 30_000
const heldCount = 4
const troubles = ['storage.failed', 'worker.beat_failed'] as const
const diskMegabytes = 48
/** Bytes that neither fit into a page with others nor can be compressed. */
const bulky = (): string => randomBytes(40_000).toString('hex')

const disk = smallDisk(diskMegabytes)
/** Of a PostgreSQL of this file's own: while the disk is full no database of a server can be dropped. */
const serverFolder = mkdtempSync(join(tmpdir(), 'chokaq-full-disk-'))
chmodSync(serverFolder, 0o755)
afterAll(async () => {
  await stopSharedServer(serverFolder)
  disk?.remove()
})
/**
 * Skipped where this process may not mount, because it is not root or is in a container without that right, and for
 * PostgreSQL where the server is not of this run, because its files are elsewhere. What needs no right is held by the
 * file below and by the table in test/postgres/outages.test.ts.
 */
const isPossible = (name: string): boolean => disk !== undefined && (name === 'SQLite' || !isServerGiven())

class Scene {
  readonly chokaq: ChokaQ
  readonly workers: readonly Worker[]
  readonly events: ChokaQEvent[] = []
  /** How often each job ran. */
  readonly runs = new Map<string, number>()
  readonly #accepted: string[] = []
  #openGate: () => void = () => undefined

  constructor(storage: Storage) {
    const onEvent = (event: ChokaQEvent): void => void this.events.push(event)
    this.chokaq = createChokaQ({ storage, enqueueDeadline: 1_000, onEvent })
    const gate = new Promise<void>((resolve) => (this.#openGate = resolve))
    const handler = defineHandler(note, {
      sideEffects: 'none',
      run: async ({ op }) => {
        this.runs.set(op, (this.runs.get(op) ?? 0) + 1)
        if (op.startsWith('held')) await gate
        return { data: bulky() }
      },
    })
    this.workers = ['a', 'b'].map((name) =>
      createWorker({ chokaq: this.chokaq, handlers: [handler], name, ...roomyLeaseTimes }),
    )
  }

  openGate(): void {
    this.#openGate()
  }

  async enqueue(op: string, data?: string): Promise<void> {
    await this.chokaq.enqueue(note, { op, ...(data === undefined ? {} : { data }) })
    this.#accepted.push(op)
  }

  async flow(prefix: string, count: number): Promise<void> {
    for (let at = 0; at < count; at += 1) await this.enqueue(`${prefix}-${at}`)
  }

  named<N extends ChokaQEvent['name']>(...names: readonly N[]): readonly Extract<ChokaQEvent, { name: N }>[] {
    const wanted: ReadonlySet<string> = new Set(names)
    return this.events.filter((event): event is Extract<ChokaQEvent, { name: N }> => wanted.has(event.name))
  }

  /** How often the storage had no room for this. */
  refusals(during: string): number {
    return this.named('storage.failed').filter(
      (event) => event.during === during && event.failure.message.includes('free space'),
    ).length
  }

  /** What is wrong: a job that was accepted and is not in the archive, one that was not and is there, one that ran twice. */
  async problems(): Promise<readonly string[]> {
    const { driver } = partsOf(this.chokaq)
    const stored = (await allOf(driver, 'archive')).map(
      ({ payload }) => (JSON.parse(payload ?? '{}') as { op: string }).op,
    )
    return [
      ...this.#accepted.filter((op) => !stored.includes(op)).map((op) => `${op} is lost`),
      ...stored.filter((op) => !this.#accepted.includes(op)).map((op) => `${op} was refused and is there`),
      ...[...this.runs].filter(([, count]) => count !== 1).map(([op, count]) => `${op} ran ${count} times`),
    ]
  }

  /** Until all that was accepted is done. */
  settled(withinMs: number): Promise<unknown> {
    return until('all jobs to be done', withinMs, () => {
      const done = new Set(this.named('job.completed').map(({ jobId }) => jobId))
      return done.size >= this.#accepted.length
    })
  }

  async close(): Promise<void> {
    this.openGate()
    await Promise.all(this.workers.map((worker) => worker.stop()))
    await this.chokaq.close()
  }
}

/** As after a while of quiet: all is in the file, and none of it needs more room. */
function cutLog(url: string): void {
  const db = openUserFile(url)
  db.pragma('wal_checkpoint(TRUNCATE)')
  db.close()
}

async function opened(storage: Storage, onClosed: () => Promise<void>): Promise<Scene> {
  const scene = new Scene(storage)
  onTestFinished(async () => {
    await scene.close()
    await onClosed()
  })
  for (const worker of scene.workers) await worker.start()
  return scene
}

interface Place {
  readonly name: string
  readonly fill: () => void
  readonly free: () => void
}

/** Jobs run while the place is filled, end while it is full, and are done once there is room again. */
async function outlast(scene: Scene, place: Place, beforeFull: () => Promise<void>): Promise<void> {
  await scene.flow('before', 20)
  await scene.settled(limitMs)
  await scene.flow('held', heldCount)
  await until('all of them to run', limitMs, () => scene.runs.size === 20 + heldCount)
  await beforeFull()
  const troubleBefore = scene.named(...troubles).length

  place.fill()
  const startMs = performance.now()
  const refusal: unknown = await scene.enqueue('refused', bulky()).catch((error: unknown) => error)
  expect(refusal).toMatchObject({
    code: 'CHOKAQ_STORAGE_FULL',
    message: expect.stringContaining('Nothing was written; free space and try again.') as string,
  })
  scene.openGate()
  await until('outcomes that find no room', limitMs, () => scene.refusals('settle') > 0)
  await pass(fullMs)
  const lastedMs = performance.now() - startMs
  const troubleCount = scene.named(...troubles).length - troubleBefore
  process.stdout.write(
    `${place.name}, full for ${Math.round(lastedMs)} ms: ${troubleCount} error events of two workers\n`,
  )
  expect(scene.named('worker.fenced', 'worker.declared_dead', 'worker.stopped')).toEqual([])
  expect(troubleCount).toBeLessThan(2 * ((3 * lastedMs) / roomyLeaseTimes.heartbeat + lastedMs / 1_000 + 20))

  place.free()
  await scene.settled(backMs)
  await scene.flow('after', 20)
  await scene.settled(backMs)
  expect(await scene.problems()).toEqual([])
  expect(scene.workers.map(({ state }) => state)).toEqual(['running', 'running'])
}

describe.each(crashStorages(serverFolder))('a disk that is full, on $name', (storage) => {
  it.skipIf(!isPossible(storage.name))(
    'K26 refuses what is new, keeps the outcomes of what runs, and the work goes on when there is room',
    async () => {
      if (disk === undefined) throw new TypeError('there is no disk')
      const database = await storage.create({ disk: disk.folder })
      const scene = await opened(openStorage(database.url), () => database.remove())
      onTestFinished(() => disk.free())
      await outlast(scene, { name: `${storage.name} on a disk`, fill: disk.fill, free: disk.free }, async () => {
        if (storage.name === 'SQLite') cutLog(database.url)
        // The next beats give a log that was cut to nothing a few pages again.
        await pass(3 * roomyLeaseTimes.heartbeat)
      })
      // A worker that runs has transactions open now and then.
      await scene.close()
      expect(await database.damage()).toEqual([])
    },
    120_000,
  )
})

describe('a file that may not grow', () => {
  it('K26 refuses what is new, keeps the outcomes of what runs, and the file is whole', async () => {
    const database = await sqliteFile.create()
    let db: SqliteDatabase | undefined
    const driver = { ...betterSqlite3, open: (path: string) => (db = betterSqlite3.open(path)) }
    const storage = sqlite(database.url.slice('sqlite:'.length), { driver })
    const scene = await opened(storage, () => database.remove())
    const limitPages = (pages: number) => () => db?.exec(`PRAGMA max_page_count = ${pages}`)
    // Smaller than it is: SQLite takes the present size.
    await outlast(scene, { name: 'a file', fill: limitPages(1), free: limitPages(1_000_000) }, async () => undefined)
    await scene.close()
    expect(await database.damage()).toEqual([])
  }, 120_000)
})
