import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { cli, type CliResult } from './fake-io.ts'
import { charge, openScene, resize, userFile, type Scene } from './scene.ts'

let scene: Scene
beforeEach(async () => {
  scene = await openScene()
})
afterEach(() => scene.close())

const dlq = (...args: string[]): Promise<CliResult> => cli(['dlq', ...args], { cwd: scene.cwd })
const deadCount = async (): Promise<number> => (await scene.chokaq.dlq.list()).jobs.length

async function bury(count: number): Promise<readonly string[]> {
  const ids: string[] = []
  for (let i = 0; i < count; i += 1) ids.push((await scene.chokaq.enqueue(resize, { id: `bad${i}` })).id)
  await scene.work()
  return ids
}

/** A handler under review failed, so nobody knows what happened. */
async function buryInDoubt(): Promise<string> {
  const { id } = await scene.chokaq.enqueue(charge, { order: 'bad', cents: 1 })
  await scene.work()
  return id
}

describe('dlq list and show', () => {
  it('lists by reason, and shows a job in doubt as one', async () => {
    const [id = ''] = await bury(1)
    const inDoubt = await buryInDoubt()
    const { json } = await dlq('list', '--reason', 'FatalError', '--type', 'image.resize.v1', '--json')
    expect(json).toMatchObject([{ jobs: [{ id, reason: 'FatalError', inDoubt: false }] }])
    expect((await dlq('show', inDoubt)).stdout).toMatch(/^state +dead, in doubt/m)
    expect((await dlq('list', '--reason', 'Boredom')).code).toBe(2)
  })
})

describe('dlq resurrect', () => {
  it('wants to know whether it is the same operation', async () => {
    const [id = ''] = await bury(1)
    for (const mode of [[], ['--continue', '--new-operation']]) {
      const result = await dlq('resurrect', id, ...mode)
      expect(result.code).toBe(2)
      expect(result.stderr).toContain('--new-operation starts another one')
    }
    expect(await dlq('resurrect', '--continue')).toMatchObject({ code: 2 })
  })

  it('brings jobs back by id and says what became of each', async () => {
    const [one = '', two = ''] = await bury(2)
    const unknown = randomUUID()
    const result = await dlq('resurrect', one, two, unknown, '--continue', '--note', 'fixed', '--json')
    expect(result.code).toBe(4)
    expect(result.json).toEqual([
      {
        jobs: [
          { id: one, outcome: 'resurrected', generation: 1 },
          { id: two, outcome: 'resurrected', generation: 1 },
          { id: unknown, outcome: 'not-found' },
        ],
      },
    ])
    expect(await deadCount()).toBe(0)
    expect((await scene.chokaq.insight.audit())[0]).toMatchObject({ actor: 'tester', note: 'fixed' })
  })

  it('refuses to continue a job in doubt, and starts a new operation when told so', async () => {
    const id = await buryInDoubt()
    const refused = await dlq('resurrect', id, '--continue')
    expect(refused.code).toBe(3)
    expect(refused.stdout).toContain('nobody knows whether')
    const unproven = await dlq('resurrect', id, '--new-operation')
    expect(unproven).toMatchObject({ code: 3 })
    expect(unproven.stdout).toContain('--absence')
    expect(await dlq('resurrect', id, '--new-operation', '--absence', 'no such charge')).toMatchObject({ code: 0 })
    expect((await scene.chokaq.insight.audit())[0]?.detail).toContain('no such charge')
  })

  it('replaces the payload of one job, of a keyed one with its contract only', async () => {
    const [id = ''] = await bury(1)
    expect(await dlq('resurrect', id, '--continue', '--payload', '{"id":"good"}')).toMatchObject({ code: 0 })
    expect(await scene.chokaq.jobs.get(id)).toMatchObject({ payload: '{"id":"good"}', state: 'pending' })

    const keyed = await buryInDoubt()
    const edit = [
      'resurrect',
      keyed,
      '--new-operation',
      '--absence',
      'not at the bank',
      '--payload',
      '{"order":"o9","cents":2}',
    ]
    expect(await dlq(...edit)).toMatchObject({ code: 2 })
    scene.write(
      'pay.ts',
      userFile(`
      export const jobs = { pay: defineJob({ type: 'payment.charge.v1', payload: z.object({ order: z.string(), cents: z.number() }), key: (p: { order: string }) => p.order, duplicateWindow: '1d' }) }
    `),
    )
    expect(await dlq(...edit, '--jobs', 'pay.ts')).toMatchObject({ code: 0 })
    expect(await scene.chokaq.jobs.get(keyed)).toMatchObject({ payload: '{"order":"o9","cents":2}', keyPrefix: 'o9' })
  })

  it('refuses a payload for many, and one that is no JSON', async () => {
    const [one = '', two = ''] = await bury(2)
    expect(await dlq('resurrect', one, two, '--continue', '--payload', '{}')).toMatchObject({ code: 2 })
    expect(await dlq('resurrect', one, '--continue', '--payload', '{')).toMatchObject({ code: 2 })
    expect(await deadCount()).toBe(2)
  })

  it('asks before it brings back what a filter found', async () => {
    await bury(3)
    await buryInDoubt()
    const asked = await dlq('resurrect', '--all', '--continue')
    expect(asked.code).toBe(3)
    expect(asked.stderr).toContain('3 dead jobs will come back (continue). In doubt, so left out: 1')
    expect(await dlq('resurrect', '--all', '--continue', '--yes')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('3 of 3') as string,
    })
    expect(await deadCount()).toBe(1)
  })
})

describe('dlq purge', () => {
  it('counts exactly and refuses without a confirmation', async () => {
    await bury(3)
    await buryInDoubt()
    for (const json of [[], ['--json']]) {
      const result = await dlq('purge', '--all', ...json)
      expect(result.code).toBe(3)
      expect(result.stderr).toContain('3 dead jobs will be deleted for good. In doubt, so kept: 1.')
    }
    expect((await dlq('purge', '--all', '--dry-run', '--json')).json).toMatchObject([
      { purgedCount: 0, selectedCount: 3 },
    ])
    expect(await deadCount()).toBe(4)
  })

  it('deletes what was counted, and leaves what is in doubt', async () => {
    await bury(3)
    const inDoubt = await buryInDoubt()
    const { json, code } = await dlq('purge', '--all', '--yes', '--json')
    expect(code).toBe(0)
    expect(json).toEqual([{ purgedCount: 3, selectedCount: 3, inDoubtIds: [inDoubt], missingIds: [] }])
    expect(await deadCount()).toBe(1)
  })

  it('deletes by id and by filter, and names what is not dead', async () => {
    const [one = ''] = await bury(2)
    const alive = await scene.chokaq.enqueue(resize, { id: 'a' })
    const result = await dlq('purge', one, one, alive.id, '--yes')
    expect(result).toMatchObject({ code: 4 })
    expect(result.stdout).toBe(`deleted 1 of 1 dead job. Not dead, or not known: ${alive.id}.\n`)
    expect(await dlq('purge', '--type', 'other', '--yes')).toMatchObject({
      code: 0,
      stdout: '0 dead jobs to delete.\n',
    })
    expect(await dlq('purge', '--reason', 'FatalError', '--yes')).toMatchObject({ code: 0 })
    expect(await deadCount()).toBe(0)
    expect(await scene.chokaq.jobs.get(alive.id)).toMatchObject({ state: 'pending' })
  })

  it('refuses nothing, or everything and something', async () => {
    expect(await dlq('purge', '--yes')).toMatchObject({ code: 2 })
    expect(await dlq('purge', '--all', '--type', 'x', '--yes')).toMatchObject({ code: 2 })
    expect(await dlq('purge', randomUUID(), '--all', '--yes')).toMatchObject({ code: 2 })
  })

  it('asks a person, and shows how far it is', async () => {
    await bury(3)
    const ask = (presses: string): Promise<CliResult> => cli(['dlq', 'purge', '--all'], { cwd: scene.cwd, presses })
    for (const key of ['n', '\u0003']) {
      const refused = await ask(key)
      expect(refused.code).toBe(3)
      expect(refused.stderr).toContain('CHOKAQ_CLI_CONFIRM: Nothing was done.')
    }
    expect(await deadCount()).toBe(3)
    const done = await ask('y')
    expect(done).toMatchObject({ code: 0, stdout: 'deleted 3 of 3 dead jobs.\n' })
    expect(done.stderr).toMatch(/█+ 3\/3/)
  })
})
