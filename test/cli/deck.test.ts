// `chokaq deck`: serves until it is told to stop, and opens itself to nobody by mistake.
import { createChokaQ } from 'chokaq'
import { sqlite } from 'chokaq/sqlite'
import { describe, expect, it } from 'vitest'
import { scratchPath } from '../storage/scratch-sqlite.ts'
import { cli, startCli, type RunningCli } from './fake-io.ts'

async function database(): Promise<string> {
  const path = scratchPath()
  const chokaq = createChokaQ({ storage: sqlite(path) })
  await chokaq.ready()
  await chokaq.close()
  return path
}

async function served(
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<{ running: RunningCli; url: string }> {
  const path = await database()
  const running = startCli(['deck', '--db', path, '--port', '0', ...args], { cwd: '.', env })
  const line = await running.line(/http:/)
  return { running, url: /http:\S+/.exec(line)?.[0] ?? '' }
}

async function stopped(running: RunningCli): Promise<number> {
  running.signal('SIGINT')
  const { code } = await running.done
  expect(running.listenerCount()).toBe(0)
  return code
}

describe('chokaq deck', () => {
  it('serves this machine, as the user of the operating system, until it is stopped', async () => {
    const { running, url } = await served([])
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/)
    expect(await (await fetch(`${url}api/session`)).json()).toMatchObject({
      actor: 'tester',
      role: 'admin',
      source: 'jobs.db',
    })
    expect(await stopped(running)).toBe(0)
    await expect(fetch(`${url}api/session`)).rejects.toThrow()
  })

  it('takes a token from the environment, and lets nobody in without it', async () => {
    const { running, url } = await served(['--read-only'], { CHOKAQ_DECK_TOKEN: 'a-token-of-some-length' })
    expect((await fetch(`${url}api/session`)).status).toBe(401)
    const headers = { authorization: 'Bearer a-token-of-some-length' }
    expect(await (await fetch(`${url}api/session`, { headers })).json()).toMatchObject({ role: 'viewer' })
    expect(await stopped(running)).toBe(0)
  })

  it.each(['0.0.0.0', '::', '10.0.0.7', 'deck.example.com'])(
    'refuses %s without a token, an empty one included',
    async (host) => {
      const path = await database()
      const answer = await cli(['deck', '--db', path, '--host', host], { cwd: '.', env: { CHOKAQ_DECK_TOKEN: '' } })
      expect([answer.code, answer.stderr]).toEqual([2, expect.stringMatching(/needs a token/)])
    },
  )

  it('says that a port is taken', async () => {
    const { running, url } = await served([])
    const path = await database()
    const answer = await cli(['deck', '--db', path, '--port', new URL(url).port], { cwd: '.' })
    expect([answer.code, answer.stderr]).toEqual([1, expect.stringMatching(/EADDRINUSE/)])
    await stopped(running)
  })

  it('makes no database', async () => {
    expect((await cli(['deck', '--db', scratchPath()], { cwd: '.' })).code).toBe(5)
  })
})
