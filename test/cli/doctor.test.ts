import { readFileSync } from 'node:fs'
import Database from 'better-sqlite3'
import { createWorker } from 'chokaq/worker'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { DoctorFacts } from '../../src/cli/doctor/facts.ts'
import { doctorChecks, examine, type Finding } from '../../src/cli/doctor/findings.ts'
import { cli, type CliResult } from './fake-io.ts'
import { by, charge, handlers, openScene, resize, type Scene } from './scene.ts'

let scene: Scene
beforeEach(async () => {
  scene = await openScene()
})
afterEach(() => scene.close())

const doctor = (...args: string[]): Promise<CliResult> => cli(['doctor', ...args], { cwd: scene.cwd })

async function checks(): Promise<readonly string[]> {
  const { json } = await doctor('--json')
  return (json[0] as { findings: Finding[] }).findings.map(({ check, severity }) => `${severity} ${check}`)
}

/** While a worker of the scene lives. */
async function withWorker<T>(work: () => Promise<T>, queues: readonly string[] = ['default']): Promise<T> {
  const worker = createWorker({ chokaq: scene.chokaq, handlers: handlers.slice(0, 1), queues })
  await worker.start()
  try {
    return await work()
  } finally {
    await worker.stop()
  }
}

describe('chokaq doctor', () => {
  it('finds nothing where nothing is wrong', async () => {
    const { code, stdout } = await doctor()
    expect({ code, stdout }).toEqual({ code: 0, stdout: '0 live workers, 0 errors, 0 warnings\n' })
  })

  it('says that no worker lives only while jobs wait', async () => {
    await scene.chokaq.enqueue(resize, { id: 'a' })
    const { code, stdout } = await doctor()
    expect(code).toBe(1)
    expect(stdout).toContain('error no-worker: 1 job waiting, and no worker lives\n  Start a worker.')
    expect(stdout).toMatch(/QUEUE +WORKERS +PENDING[^\n]*\ndefault +0 +1 /)
    await scene.chokaq.queues.pause('default', by)
    expect(await checks()).toEqual(['error no-worker', 'warning paused-queue'])
  })

  it('finds types that no live worker knows, and queues that none serves', async () => {
    await scene.chokaq.enqueue(charge, { order: 'a', cents: 1 })
    await scene.chokaq.enqueue(resize, { id: 'a' }, { queue: 'forgotten' })
    await withWorker(async () => {
      const { code, stdout } = await doctor()
      expect(code).toBe(1)
      expect(stdout).toContain('jobs of type "payment.charge.v1" wait in queue "default"')
      expect(stdout).toContain('queue "forgotten" has 1 job, and no live worker serves it')
      expect(stdout).toContain('1 live worker, 2 errors, 0 warnings')
    })
  })

  it('finds what waits for a person, and what died lately', async () => {
    for (let i = 0; i < 10; i += 1) await scene.chokaq.enqueue(resize, { id: `bad${i}` })
    await scene.chokaq.enqueue(charge, { order: 'bad', cents: 1 })
    await scene.work()
    const { code, stdout } = await doctor()
    expect(code).toBe(0)
    expect(stdout).toMatch(/warning review: 1 job waits for a person, the oldest for /)
    expect(stdout).toContain('11 jobs died within the last hour: 10 × image.resize.v1 FatalError, 1 ×')
  })

  it('finds tables that were changed by something else', async () => {
    const db = new Database(scene.db)
    db.prepare(`UPDATE chokaq_migrations SET name = 'other' WHERE version = 1`).run()
    db.close()
    const { code, stdout } = await doctor()
    expect(code).toBe(1)
    expect(stdout).toContain('error schema-drift: migration 1 is "other" in the database and "hot_archive_dlq" here')
  })

  it('tells what the boot check of the last worker warned of', async () => {
    const worker = createWorker({ chokaq: scene.chokaq, handlers, killDeadline: '10s' })
    await worker.tick()
    await worker.stop()
    const { code, stdout } = await doctor()
    expect(code).toBe(0)
    expect(stdout.match(/warning boot-warning: shutdown-before-kill/g)).toHaveLength(1)
  })
})

describe('the findings of a doctor', () => {
  const nowMs = 1_000_000
  const queue = {
    name: 'mail',
    paused: false,
    maxConcurrency: undefined,
    scheduledCount: 0,
    pendingCount: 0,
    fetchedCount: 0,
    processingCount: 0,
    deadCount: 0,
    lagMs: undefined,
  }
  const worker = {
    id: 'w',
    name: 'host:1',
    identity: { host: 'h', bootId: undefined, pidNamespace: undefined, pid: 1, startTime: undefined },
    queues: ['mail'],
    types: ['mail.v1'],
    concurrency: 1,
    beat: 1,
    startedAtMs: 0,
    beatAtMs: nowMs,
    runningCount: 2,
    bufferedCount: 0,
  }
  const none: DoctorFacts = {
    nowMs,
    queues: [],
    liveWorkers: [worker],
    silentWorkers: [],
    types: [],
    waitingTypes: [],
    dead: [],
    inReview: [],
    schema: { applied: [], known: [] },
    upkeep: { nowMs, tables: [], oldestSnapshotMs: undefined, file: undefined, listenerCount: undefined },
    behindMs: 0,
  }
  const upkeep = (found: Partial<DoctorFacts['upkeep']>): Partial<DoctorFacts> => ({
    upkeep: { ...none.upkeep, ...found },
  })
  const table = { name: 'jobs_hot', liveCount: 200, deadCount: 60_000, cleanedAtMs: undefined, isCleaned: true }
  const megabyte = 1_000_000
  const found = (facts: Partial<DoctorFacts>) => examine({ ...none, ...facts }).map((f) => `${f.severity}: ${f.text}`)

  it.each<[string, Partial<DoctorFacts>, string]>([
    [
      'a short lag',
      { queues: [{ ...queue, pendingCount: 1, lagMs: 5_000 }] },
      'warning: the oldest job of queue "mail"',
    ],
    ['a long lag', { queues: [{ ...queue, pendingCount: 1, lagMs: 60_000 }] }, 'error: the oldest job of queue "mail"'],
    [
      'jobs that will be due in a queue nobody serves',
      { queues: [{ ...queue, name: 'x', scheduledCount: 2 }] },
      'warning: queue "x" has 2 jobs',
    ],
    [
      'a silent worker',
      { silentWorkers: [{ ...worker, beatAtMs: nowMs - 60_000 }] },
      'warning: the beat of worker "host:1" has stood still for 1m, with 2 jobs',
    ],
    ['a clock that is behind', { behindMs: 5_000 }, 'warning: the clock of this machine is 5s behind that of the data'],
    [
      'a clock that is ahead',
      { behindMs: -5_000 },
      'warning: the clock of this machine is 5s ahead of that of the data',
    ],
    [
      'dead rows that were never cleaned up',
      upkeep({ tables: [table] }),
      'warning: the table "jobs_hot" has 60000 dead rows and 200 others, cleaned up last: never',
    ],
    [
      'dead rows that were cleaned up too long ago',
      upkeep({ tables: [{ ...table, cleanedAtMs: nowMs - 700_000 }] }),
      'cleaned up last: 11m 40s ago',
    ],
    [
      'autovacuum that is off',
      upkeep({ tables: [{ ...table, deadCount: 1, isCleaned: false }] }),
      'warning: nothing cleans up the table "jobs_hot" (1 dead row): autovacuum is off',
    ],
    [
      'an old transaction',
      upkeep({ oldestSnapshotMs: 3_600_000 }),
      'warning: a transaction has been open for 1h: no row that died since can be cleaned up',
    ],
    [
      'a log that a reader keeps large',
      upkeep({ file: { sizeBytes: 4_096, freeBytes: 0, logBytes: 200 * megabyte } }),
      'warning: the write-ahead log has 200 MB',
    ],
    [
      'a file that is mostly free',
      upkeep({ file: { sizeBytes: 1_000 * megabyte, freeBytes: 900 * megabyte, logBytes: 0 } }),
      "warning: 900 MB of the file's 1000 MB are free",
    ],
    [
      'workers that none of the others can wake',
      upkeep({ listenerCount: 0 }),
      'warning: no worker hears what other processes enqueue',
    ],
    [
      'a migration that has not run',
      { schema: { applied: [], known: [{ version: 1, name: 'a' }] } },
      'error: migration 1 "a" has not run',
    ],
    [
      'one that nobody knows',
      { schema: { applied: [{ version: 1, name: 'a' }], known: [] } },
      'error: migration 1 "a" is not known here',
    ],
  ])('tell of %s', (_what, facts, text) => {
    expect(found(facts)).toEqual([expect.stringContaining(text)])
  })

  it('tell nothing of a lag below 5 s, a lag that is a pause, or answers without warnings', () => {
    const types = [
      { type: 't', queue: 'q', keyed: false, keyScope: 't', allowRaw: false, answers: '{}', payloadSchema: null },
    ]
    expect(found({ queues: [{ ...queue, pendingCount: 1, lagMs: 4_999 }], types })).toEqual([])
  })

  it('tell nothing of an upkeep that keeps up, or of a clock within what the call took', () => {
    const kept = [
      { ...table, cleanedAtMs: nowMs - 60_000 },
      { ...table, deadCount: 100 },
      { ...table, liveCount: 1_000_000 },
    ]
    const file = { sizeBytes: 1_000 * megabyte, freeBytes: 100 * megabyte, logBytes: 60 * megabyte }
    expect(found({ ...upkeep({ tables: kept, oldestSnapshotMs: 1_000, file }), behindMs: 1_900 })).toEqual([])
  })

  it('put errors first', () => {
    const queues = [
      { ...queue, paused: true, pendingCount: 1, lagMs: 1 },
      { ...queue, name: 'x', pendingCount: 1 },
    ]
    expect(found({ queues }).map((text) => text.split(':')[0])).toEqual(['error', 'warning'])
  })

  it('are those that docs/cli.md lists', () => {
    const page = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8')
    const section = page.split(/^## /m).find((each) => each.startsWith('`chokaq doctor')) ?? ''
    expect([...section.matchAll(/^\| `([\w-]+)` +\|/gm)].map(([, name]) => name)).toEqual([...doctorChecks])
  })
})
