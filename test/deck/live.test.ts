// Live events: read once for all who listen, not at all while nobody does, and nobody waits for a client that does not read.
import { once } from 'node:events'
import { createServer, request, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { toNodeListener } from 'chokaq/http'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { LiveEvent } from '../../src/deck/wire.ts'
import { resize } from '../engine/contracts.ts'
import { sqliteInMemory } from '../engine/sqlite-storage.ts'
import { soon } from '../soon.ts'
import { decks, type DeckScene } from './deck-scene.ts'

const open = decks(sqliteInMemory)

interface Listening {
  /** What has arrived so far. */
  readonly events: LiveEvent[]
  readonly comments: string[]
  readonly ended: Promise<unknown>
  stop(): Promise<void>
}

async function listen(scene: DeckScene): Promise<Listening> {
  const response = await scene.ask('api/events')
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const events: LiveEvent[] = []
  const comments: string[] = []
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder()
    let text = ''
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      text += decoder.decode(value, { stream: true })
      const frames = text.split('\n\n')
      text = frames.pop() ?? ''
      for (const frame of frames) {
        const data = /^data: (.*)$/m.exec(frame)?.[1]
        if (data !== undefined) events.push(JSON.parse(data) as LiveEvent)
        else comments.push(frame)
      }
    }
  }
  return { events, comments, ended: read().catch((error: unknown) => error), stop: () => reader.cancel() }
}

/** Statements that reach the storage, by call. */
function counted(scene: DeckScene): Map<string, number> {
  const calls = new Map<string, number>()
  scene.world.fault = (call) => {
    calls.set(call, (calls.get(call) ?? 0) + 1)
    return 'none'
  }
  return calls
}

describe('live events', () => {
  it('bring the state at once, and again when it has changed', async () => {
    const scene = open()
    const { runtime } = scene.world
    const listening = await listen(scene)
    await runtime.advance(100)
    expect(listening.events).toMatchObject([{ kind: 'state', state: { pendingCount: 0 } }])
    await scene.chokaq.enqueue(resize, { id: 'p1' }, { delay: '1h' })
    await runtime.advance(2_000)
    expect(listening.events.at(-1)).toMatchObject({ kind: 'state', state: { scheduledCount: 1 } })
    await runtime.advance(10_000)
    expect(listening.events).toHaveLength(2)
    await runtime.advance(20_000)
    expect(listening.comments.some((text) => text.startsWith(':'))).toBe(true)
    await listening.stop()
  })

  it('1,000 clients cost the database no more than one', async () => {
    const scene = open({ limits: { requestsPerMinute: 10_000 } })
    const { runtime } = scene.world
    await scene.chokaq.ready()
    const statementsOf = async (count: number): Promise<number> => {
      const calls = counted(scene)
      const clients = await Promise.all(Array.from({ length: count }, () => listen(scene)))
      await runtime.advance(60_000)
      expect(clients.filter(({ events }) => events.length > 0)).toHaveLength(count)
      for (const client of clients) await client.stop()
      await runtime.advance(10_000)
      return [...calls.values()].reduce((sum, n) => sum + n, 0)
    }
    const one = await statementsOf(1)
    const thousand = await statementsOf(1_000)
    expect(one).toBeGreaterThan(100)
    expect(thousand).toBe(one)
  })

  it('nothing is read while nobody listens', async () => {
    const scene = open()
    await scene.chokaq.ready()
    const listening = await listen(scene)
    await scene.world.runtime.advance(5_000)
    await listening.stop()
    const calls = counted(scene)
    await scene.world.runtime.advance(60_000)
    expect([...calls]).toEqual([])
    expect(scene.world.runtime.pendingTimerCount()).toBe(0)
  })

  it('say so when the storage is away, and when it is back', async () => {
    const scene = open()
    const { runtime } = scene.world
    const listening = await listen(scene)
    await runtime.advance(100)
    scene.world.fault = (call) => (call.startsWith('inspector.') ? 'before' : 'none')
    await runtime.advance(2_000)
    expect(listening.events.at(-1)).toMatchObject({
      kind: 'trouble',
      title: expect.stringMatching(/database/) as unknown,
    })
    scene.world.fault = () => 'none'
    await runtime.advance(2_000)
    expect(listening.events.at(-1)).toMatchObject({ kind: 'state' })
    await listening.stop()
  })

  it('a client that reads nothing is cut off, and the others are not', async () => {
    const scene = open()
    const { runtime } = scene.world
    const deaf = await scene.ask('api/events')
    const listening = await listen(scene)
    for (let n = 0; n < 12; n += 1) {
      await scene.chokaq.enqueue(resize, { id: `p${n}` }, { delay: '1h' })
      await runtime.advance(2_000)
    }
    expect(listening.events.at(-1)).toMatchObject({ state: { scheduledCount: 12 } })
    await expect(deaf.text()).rejects.toThrow(/does not read/)
    await listening.stop()
  })

  it('are limited in number, and end with the Deck', async () => {
    const scene = open({ limits: { maxEventStreams: 1 } })
    const listening = await listen(scene)
    expect(await scene.refusal('api/events')).toBe('503 too-many-streams')
    await scene.deck.close()
    expect(await listening.ended).toBeUndefined()
  })
})

describe('toNodeListener', () => {
  async function served(scene: DeckScene): Promise<number> {
    const server = createServer(toNodeListener(scene.deck))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    return (server.address() as AddressInfo).port
  }

  it('passes events on as they come, and ends their stream with the client', async () => {
    const scene = open()
    const port = await served(scene)
    const outgoing = request({ port, path: '/api/events', host: '127.0.0.1' }).end()
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
    expect(incoming.headers['content-type']).toBe('text/event-stream')
    const [first] = (await once(incoming, 'data')) as [Buffer]
    expect(first.toString()).toMatch(/^retry: /)
    const calls = counted(scene)
    incoming.destroy()
    await once(outgoing, 'close')
    // The server hears of it a moment later; then nothing is polled any more.
    await expect.poll(() => scene.world.runtime.pendingTimerCount(), soon).toBe(0)
    calls.clear()
    await scene.world.runtime.advance(10_000)
    expect([...calls]).toEqual([])
  })

  it('tells the Deck who asks', async () => {
    const scene = open()
    const port = await served(scene)
    const direct = await fetch(`http://127.0.0.1:${port}/api/session`)
    expect([direct.status, ((await direct.json()) as { role: string }).role]).toEqual([200, 'admin'])
    const proxied = await fetch(`http://127.0.0.1:${port}/api/session`, { headers: { 'x-forwarded-for': '127.0.0.1' } })
    expect(proxied.status).toBe(403)
  })

  it('sends a long export no faster than it is read, and stops with the client', async () => {
    let pulled = 0
    let isCancelled = false
    const server = createServer(
      toNodeListener(async () => {
        const body = new ReadableStream<Uint8Array>(
          {
            async pull(controller) {
              await new Promise(setImmediate)
              pulled += 1
              controller.enqueue(new Uint8Array(256_000))
            },
            cancel: () => void (isCancelled = true),
          },
          { highWaterMark: 0 },
        )
        return new Response(body)
      }),
    )
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const outgoing = request({ port, host: '127.0.0.1' }).end()
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
    incoming.pause()
    let before = -1
    await expect
      .poll(
        () => {
          const isStill = pulled === before
          before = pulled
          return isStill && pulled > 1
        },
        { ...soon, interval: 100 },
      )
      .toBe(true)
    expect(pulled).toBeLessThan(100)
    incoming.destroy()
    await expect.poll(() => isCancelled, soon).toBe(true)
  })
})
