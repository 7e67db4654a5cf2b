import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { cli, type CliResult } from './fake-io.ts'
import { by, charge, openScene, resize, type Scene } from './scene.ts'

let scene: Scene
beforeEach(async () => {
  scene = await openScene()
})
afterEach(() => scene.close())

const jobs = (...args: string[]): Promise<CliResult> => cli(['jobs', ...args], { cwd: scene.cwd })
async function ids(...args: string[]): Promise<readonly string[]> {
  const { json } = await jobs('list', '--json', ...args)
  return (json[0] as { jobs: { id: string }[] }).jobs.map(({ id }) => id)
}

describe('jobs list', () => {
  it('filters by type, queue, key, tag and state', async () => {
    const one = await scene.chokaq.enqueue(resize, { id: 'a' }, { tags: ['red'], queue: '🦊' })
    const two = await scene.chokaq.enqueue(charge, { order: 'order-7', cents: 1 }, { delay: '1h' })
    const { keyHash } = (await scene.chokaq.jobs.get(two.id)) ?? {}
    expect(await ids()).toEqual([two.id, one.id])
    expect(await ids('--type', 'image.resize.v1')).toEqual([one.id])
    expect(await ids('--queue', '🦊')).toEqual([one.id])
    expect(await ids('--tag', 'red')).toEqual([one.id])
    expect(await ids('--key', 'order-')).toEqual([two.id])
    expect(await ids('--key', keyHash ?? '')).toEqual([two.id])
    expect(await ids('--state', 'scheduled')).toEqual([two.id])
    expect(await ids('--state', 'completed')).toEqual([])
    await scene.work()
    expect(await ids('--state', 'completed')).toEqual([]) // queue 🦊 was not served
    expect(await ids('--pillar', 'archive')).toEqual([])
  })

  it('goes through pages', async () => {
    for (const id of ['a', 'b', 'c']) await scene.chokaq.enqueue(resize, { id })
    const seen: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const { json } = await jobs('list', '--json', '--limit', '1', ...(cursor === '' ? [] : ['--cursor', cursor]))
      const page = json[0] as { jobs: { id: string }[]; nextCursor: string | null }
      seen.push(...page.jobs.map(({ id }) => id))
      cursor = page.nextCursor
    }
    expect(new Set(seen).size).toBe(3)
    expect((await jobs('list', '--limit', '1')).stdout).toMatch(/more: --cursor \S+/)
  })

  it('refuses limits, states and cursors that are none', async () => {
    for (const args of [
      ['--limit', '0'],
      ['--limit', '501'],
      ['--limit', 'all'],
      ['--state', 'done'],
      ['--cursor', 'x'],
    ]) {
      expect((await jobs('list', ...args)).code, args.join(' ')).toBe(2)
    }
  })

  it('prints a table for people, with nothing in it that moves their cursor', async () => {
    await scene.chokaq.enqueue(charge, { order: '\u001b[2J\u001b]0;title\u0007o\u202e1\nforged line', cents: 1 })
    const { stdout } = await jobs('list')
    expect(stdout.trimEnd().split('\n')).toHaveLength(2)
    // eslint-disable-next-line no-control-regex -- control characters are what must not be there
    expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/)
    expect((await jobs('list', '--type', 'none')).stdout).toBe('no jobs\n')
  })
})

describe('jobs show', () => {
  it('shows a job that failed and a key that was used', async () => {
    await scene.chokaq.enqueue(charge, { order: 'o1', cents: 7 }, { tags: ['x'] })
    await scene.work()
    const [id = ''] = await ids('--state', 'completed')
    const { stdout, code } = await jobs('show', id)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^state +completed$/m)
    expect(stdout).toMatch(/^marker +completed, generation 1, until 20/m)
    expect(stdout).toContain('"cents": 7')
    const { json } = await jobs('show', id, '--json')
    expect(json).toMatchObject([
      { id, payload: { order: 'o1', cents: 7 }, marker: { state: 'completed' }, duplicates: [] },
    ])
  })

  it('shows the history of a dead job, and keeps foreign lines apart from its own', async () => {
    const { id } = await scene.chokaq.enqueue(resize, { id: 'bad\nstate  completed' })
    await scene.work()
    const { stdout } = await jobs('show', id)
    expect(stdout).toMatch(/^state +dead$/m)
    expect(stdout).not.toMatch(/^state +completed/m)
    expect(stdout).toMatch(/^history\n {2}attempt 1, .*cannot read bad/m)
    expect(stdout).toMatch(/^ {4,}at /m)
  })

  it('says that a job is unknown', async () => {
    for (const id of [randomUUID(), 'x', '']) {
      const result = await jobs('show', id)
      expect(result).toMatchObject({ code: 4, stdout: '' })
      expect(result.stderr).toMatch(/^CHOKAQ_JOB_NOT_FOUND/)
    }
  })
})

describe('jobs cancel and retry', () => {
  it('cancels a waiting job once, with the actor in the audit log', async () => {
    const { id } = await scene.chokaq.enqueue(resize, { id: 'a' })
    expect(await jobs('cancel', id, '--note', 'wrong picture')).toMatchObject({ code: 0, stdout: `cancelled ${id}\n` })
    const again = await jobs('cancel', id)
    expect(again.code).toBe(3)
    expect(again.stderr).toMatch(/^CHOKAQ_NOT_POSSIBLE: cancel is not possible for job .*: it is cancelled\.$/m)
    expect(await jobs('cancel', randomUUID())).toMatchObject({ code: 4 })
    expect((await scene.chokaq.insight.audit())[0]).toMatchObject({
      actor: 'tester',
      note: 'wrong picture',
      subject: id,
    })
  })

  it('starts a scheduled job now, and no other', async () => {
    const { id } = await scene.chokaq.enqueue(resize, { id: 'bad' }, { delay: '1h' })
    expect(await jobs('retry', id, '--actor', 'ann', '--json')).toMatchObject({
      code: 0,
      json: [{ id, outcome: 'pending' }],
    })
    expect((await jobs('retry', id)).stderr).toContain('it is pending')
    await scene.work()
    const dead = await jobs('retry', id)
    expect(dead.code).toBe(3)
    expect(dead.stderr).toContain('chokaq dlq resurrect')
    expect(await jobs('retry', randomUUID())).toMatchObject({ code: 4 })
  })
})

describe('queues', () => {
  const queues = (...args: string[]): Promise<CliResult> => cli(['queues', ...args], { cwd: scene.cwd })

  it('lists, pauses, resumes and limits', async () => {
    await scene.chokaq.enqueue(resize, { id: 'a' })
    expect(await queues('pause', 'default')).toMatchObject({ code: 0, stderr: '', stdout: 'paused default\n' })
    await scene.work()
    expect((await queues('list', '--json')).json).toMatchObject([
      { queues: [{ name: 'default', paused: true, pendingCount: 1 }] },
    ])
    await queues('resume', 'default')
    expect(await queues('limit', 'default', '3')).toMatchObject({ code: 0, stdout: 'default: at most 3 at once\n' })
    expect((await queues('list')).stdout).toMatch(/^default +no +3 /m)
    expect((await queues('limit', 'default', 'none')).stdout).toBe('default: no limit\n')
  })

  it('warns of a queue nobody has used, for it may be mistyped', async () => {
    await scene.chokaq.queues.pause('default', by)
    const result = await queues('pause', 'defualt')
    expect(result.code).toBe(0)
    expect(result.stderr).toContain('did you mean "default"?')
  })

  it('refuses limits and names that are none', async () => {
    for (const count of ['0', '-1', '1.5', 'many', '1e3'])
      expect(await queues('limit', 'default', count)).toMatchObject({ code: 2 })
    expect(await queues('pause', 'a\u0000b')).toMatchObject({ code: 2 })
  })
})
