import { randomUUID } from 'node:crypto'
import { defineJob } from 'chokaq'
import { createWorker, defineEffect, defineHandler, noKey } from 'chokaq/worker'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { cli, type CliResult } from './fake-io.ts'
import { charge as unguarded, openScene, resize, type Scene } from './scene.ts'

const payOut = defineJob({
  type: 'payout.send.v1',
  payload: z.object({ payout: z.string(), calls: z.array(z.string()) }),
  result: z.object({ ids: z.array(z.string()) }),
  key: (p) => p.payout,
  duplicateWindow: '1d',
})

/** The bank takes no keys, and its answers get lost. */
const transfer = defineEffect({
  name: 'transfer',
  provider: noKey('bank'),
  run: async (_input: { to: string }): Promise<{ id: string }> => {
    throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })
  },
})

const send = defineHandler(payOut, {
  sideEffects: 'effects',
  effects: { transfer },
  whenInterrupted: 'review',
  async run(p, ctx) {
    const calls = await Promise.allSettled(p.calls.map((to) => ctx.effects.transfer({ to }, { item: to })))
    const ids = calls.map((call) => {
      if (call.status === 'rejected') throw call.reason as Error
      return call.value.id
    })
    return { ids }
  },
})

let scene: Scene
beforeEach(async () => {
  scene = await openScene()
})
afterEach(() => scene.close())

const review = (...args: string[]): Promise<CliResult> => cli(['review', ...args], { cwd: scene.cwd })
const stateOf = async (id: string): Promise<string | undefined> => (await scene.chokaq.jobs.get(id))?.state

async function work(): Promise<void> {
  const worker = createWorker({ chokaq: scene.chokaq, handlers: [send] })
  while ((await worker.tick()) > 0);
  await worker.stop()
}

async function inDoubt(payout = 'po-1', calls: string[] = ['ann']): Promise<string> {
  const { id } = await scene.chokaq.enqueue(payOut, { payout, calls })
  await work()
  return id
}

describe('review list and show', () => {
  it('lists what waits, with the effect in doubt and what became of the old owner', async () => {
    expect((await review('list')).stdout).toBe('nothing waits for a person\n')
    const id = await inDoubt()
    const handlerItself = await scene.chokaq.enqueue(unguarded, { order: 'bad', cents: 1 })
    await scene.work()
    const { stdout } = await review('list')
    expect(stdout).toMatch(/^ID +TYPE +KEY +REASON +EFFECT +AGE +ATTEMPTS +OLD OWNER +REVISION$/m)
    expect(stdout).toMatch(
      new RegExp(`^${id} +payout\\.send\\.v1 +po-1 +\\w+ +transfer \\(ann\\) .* its call has ended`, 'm'),
    )
    expect(stdout).toMatch(new RegExp(`^${handlerItself.id} +payment\\.charge\\.v1 +bad +\\w+ +— +—`, 'm'))
    const { json } = await review('list', '--type', 'payout.send.v1', '--json')
    expect(json).toMatchObject([{ reviews: [{ id, effect: 'transfer', item: 'ann', ownerGone: true, attempts: 1 }] }])
  })

  it('shows every call with its evidence, and the whole job', async () => {
    const id = await inDoubt()
    const { stdout, code } = await review('show', id)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^in doubt +transfer \(ann\)$/m)
    for (const line of [
      /^ {2}state +ambiguous: the call ended without telling what it did$/m,
      /^ {2}provider +bank$/m,
      /^ {2}provider key +none$/m,
      /^ {2}input +\{"to":"ann"\}$/m,
      /^ {2}error +.*socket hang up/m,
      /^ {2}worker +\S+$/m,
      /^marker +in_doubt, generation 1, without end$/m,
      /^history$/m,
    ])
      expect(stdout).toMatch(line)
    const { json } = await review('show', id, '--json')
    expect(json).toMatchObject([
      {
        review: { id, reason: expect.any(String) as string },
        effects: [{ name: 'transfer', item: 'ann', state: 'ambiguous', provider: 'bank', input: { to: 'ann' } }],
        job: { id, payload: { payout: 'po-1' }, marker: { state: 'in_doubt' } },
      },
    ])
  })

  it('tells a job that waits for nobody from one that is unknown', async () => {
    const { id } = await scene.chokaq.enqueue(resize, { id: 'a' })
    for (const words of [['show'], ['retry', '--yes']]) {
      const [command = '', ...options] = words
      const waiting = await review(command, id, ...options)
      expect(waiting).toMatchObject({ code: 3, stdout: '' })
      expect(waiting.stderr).toContain('pending and not in review')
      expect(await review(command, randomUUID(), ...options)).toMatchObject({ code: 4 })
    }
  })
})

describe('review adopt', () => {
  it('gives the effect its result, and the handler goes on', async () => {
    const id = await inDoubt()
    const done = await review('adopt', id, '{"id":"tr_9"}', '--yes', '--note', 'found at the bank')
    expect(done).toMatchObject({ code: 0, stdout: expect.stringMatching(/^adopt: .* at revision \d+\n$/) as string })
    await work()
    expect(await scene.chokaq.jobs.get(id)).toMatchObject({ state: 'completed', result: '{"ids":["tr_9"]}' })
    const [row] = await scene.chokaq.insight.audit()
    expect(row).toMatchObject({ act: 'resolve', actor: 'tester', note: 'found at the bank' })
  })

  it('wants to know which effect it is, where several are in doubt', async () => {
    const id = await inDoubt('po-2', ['ann', 'bob'])
    const asked = await review('adopt', id, '{"id":"tr_1"}', '--yes')
    expect(asked.code).toBe(3)
    expect(asked.stderr).toContain('several effects are in doubt')
    expect(await review('adopt', id, '{"id":"tr_1"}', '--yes', '--item', 'ann')).toMatchObject({ code: 2 })
    const named = ['--yes', '--effect', 'transfer', '--item', 'ann']
    expect(await review('adopt', id, '{"id":"tr_1"}', ...named)).toMatchObject({ code: 0 })
    await work()
    // The other one is still in doubt, and nobody has called it again.
    expect((await scene.chokaq.reviews.list()).map(({ item }) => item)).toEqual(['bob'])
  })

  it('completes a job whose handler is in doubt, with a result from standard input', async () => {
    const { id } = await scene.chokaq.enqueue(unguarded, { order: 'bad', cents: 1 })
    await scene.work()
    const stdin = '{"charged":true}'
    expect(await cli(['review', 'adopt', id, '-', '--yes'], { cwd: scene.cwd, stdin })).toMatchObject({ code: 0 })
    expect(await scene.chokaq.jobs.get(id)).toMatchObject({ state: 'completed', result: stdin })
    expect(await review('adopt', id, '{', '--yes')).toMatchObject({ code: 2 })
  })
})

describe('review retry, abandon and compensate', () => {
  it('runs again, gives up, or refuses to undo what is not known', async () => {
    const [one, two] = [await inDoubt('po-1'), await inDoubt('po-2')]
    expect(await review('retry', one, '--yes')).toMatchObject({ code: 0 })
    expect(await stateOf(one)).toBe('pending')
    const refused = await review('compensate', two, '--yes')
    expect(refused).toMatchObject({ code: 3 })
    expect(refused.stderr).toContain('an effect is still in doubt')
    const given = await review('abandon', two, '--yes', '--json', '--actor', 'bea')
    expect(given.json).toMatchObject([{ id: two, decision: 'abandon', outcome: 'resolved' }])
    expect(await scene.chokaq.enqueue(payOut, { payout: 'po-2', calls: ['ann'] })).toMatchObject({
      outcome: 'already-failed',
    })
  })

  it('says who was first, and as what', async () => {
    const id = await inDoubt()
    expect(await review('abandon', id, '--yes', '--actor', 'bea')).toMatchObject({ code: 0 })
    const late = await review('retry', id, '--yes')
    expect(late).toMatchObject({ code: 3, stdout: `nothing was done: bea has decided ${id} already (abandon)\n` })
    expect((await review('adopt', id, '1', '--yes', '--json')).json).toEqual([
      { id, decision: 'adopt', outcome: 'already-resolved', by: 'bea', as: 'abandon' },
    ])
  })

  it('refuses a revision that is another by now', async () => {
    const id = await inDoubt()
    const revision = (await scene.chokaq.reviews.list())[0]?.revision ?? -1
    const stale = await review('retry', id, '--yes', '--revision', String(revision + 1))
    expect(stale).toMatchObject({ code: 3 })
    expect(stale.stderr).toContain(`revision ${revision}`)
    expect(await review('retry', id, '--yes', '--revision', String(revision))).toMatchObject({ code: 0 })
  })
})

describe('the confirmation', () => {
  it('is asked for at a terminal, and names the revision that was read', async () => {
    const id = await inDoubt()
    const no = await cli(['review', 'retry', id], { cwd: scene.cwd, presses: 'n' })
    expect(no).toMatchObject({ code: 3 })
    expect(no.stderr.replace(/\s+/g, ' ')).toMatch(/revision \d+\. It did not happen/)
    expect(await stateOf(id)).toBe('dead')
    expect(await cli(['review', 'retry', id], { cwd: scene.cwd, presses: 'y' })).toMatchObject({ code: 0 })
    expect(await stateOf(id)).toBe('pending')
  })

  it('is refused where nobody can be asked', async () => {
    const id = await inDoubt()
    for (const json of [[], ['--json']]) {
      const result = await review('abandon', id, ...json)
      expect(result).toMatchObject({ code: 3 })
      expect(result.stderr).toContain('repeat with --yes')
    }
    expect(await stateOf(id)).toBe('dead')
  })
})
