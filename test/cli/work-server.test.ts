import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { claimOutcomes } from '../../src/core/counters.ts'
import { openTelemetry } from '../../src/cli/telemetry.ts'
import { listenAddress } from '../../src/cli/work-server.ts'
import { cli, startCli, type RunningCli } from './fake-io.ts'
import { charge, openScene, resize, resizeFile, userFile, type Scene } from './scene.ts'

let scene: Scene
beforeEach(async () => {
  scene = await openScene()
})
afterEach(() => scene.close())

const chargeFile = userFile(`
const charge = defineJob({
  type: 'payment.charge.v1',
  payload: z.object({ order: z.string(), cents: z.int() }),
  key: (p: { order: string }) => p.order,
  duplicateWindow: '1d',
})
export const handlers = [
  defineHandler(charge, {
    sideEffects: 'unguarded',
    whenInterrupted: 'review',
    async run(p: { order: string }) {
      if (p.order.startsWith('bad')) throw new FatalError('declined')
    },
  }),
]
`)

async function serve(file: string): Promise<{ readonly running: RunningCli; readonly url: string }> {
  scene.write('work.ts', file)
  const running = startCli(['work', 'work.ts', '--http', '127.0.0.1:0', '--verbose'], { cwd: scene.cwd })
  const line = await running.line(/cli\.listening/)
  await running.line(/worker\.started/)
  return { running, url: /url=(\S+)/.exec(line)?.[1] ?? '' }
}

/** '{a="1",b="2"} 3' of every sample with this name, by the values of these labels. */
function samples(text: string, name: string, labels: readonly string[]): ReadonlyMap<string, number> {
  const found = text.split('\n').filter((line) => line.startsWith(`${name}{`))
  return new Map(
    found.map((line) => {
      const values = labels.map((label) => new RegExp(`[{,]${label}="([^"]*)"`).exec(line)?.[1] ?? '')
      return [values.join(' '), Number(line.slice(line.lastIndexOf(' ')))]
    }),
  )
}

function positive(found: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  return new Map([...found].filter(([, value]) => value > 0))
}

describe('chokaq work --http', () => {
  it('answers probes while it runs, and closes with the worker', async () => {
    const { running, url } = await serve(resizeFile)
    for (const path of ['/health/live', '/health/ready']) {
      const response = await fetch(url + path)
      expect([response.status, await response.json()]).toEqual([200, { state: 'healthy', reasons: [] }])
    }
    expect((await fetch(`${url}/`)).status).toBe(404)
    expect((await fetch(`${url}/metrics`, { method: 'POST' })).status).toBe(405)
    running.signal('SIGTERM')
    expect(await running.done).toMatchObject({ code: 0, stderr: '' })
    await expect(fetch(`${url}/health/live`)).rejects.toThrow()
  })

  it('tells in /metrics what stats() tells, for each outcome of the claims', async () => {
    await scene.chokaq.enqueue(charge, { order: 'a', cents: 1 })
    await scene.chokaq.enqueue(charge, { order: 'a', cents: 1 })
    await scene.chokaq.enqueue(charge, { order: 'bad', cents: 1 })
    await expect(scene.chokaq.enqueue(charge, { order: '', cents: 1 })).rejects.toThrow()
    const { running, url } = await serve(chargeFile)
    await Promise.all([running.line(/job\.completed/), running.line(/job\.dead/)])
    const response = await fetch(`${url}/metrics`)
    expect(response.headers.get('content-type')).toContain('text/plain; version=0.0.4')
    const text = await response.text()
    const stats = (await scene.chokaq.insight.stats()).filter(({ name }) => name === 'idempotency.claims')
    expect(stats.map(({ label }) => label).sort()).toEqual(['claimed', 'completed', 'empty_key'])
    const expected = new Map(stats.map(({ queue, type, label, value }) => [`${queue} ${type} ${label}`, value]))
    const cluster = samples(text, 'chokaq_cluster_idempotency_claims_total', ['queue', 'type', 'outcome'])
    expect(positive(cluster)).toEqual(expected)
    // What never happened is there, too: a rate needs a beginning.
    const outcomes = [...cluster.keys()].filter((labels) => labels.startsWith('default payment.charge.v1 '))
    expect(outcomes.map((labels) => labels.split(' ')[2]).sort()).toEqual([...claimOutcomes].sort())
    // What this process saw itself: all but the key that was empty before it started.
    expected.delete('default payment.charge.v1 empty_key')
    expect(samples(text, 'chokaq_idempotency_claims_total', ['queue', 'type', 'outcome'])).toEqual(expected)
    expect(samples(text, 'chokaq_cluster_queue_jobs', ['queue', 'state']).get('default dead')).toBe(1)
    expect(text).toMatch(/^chokaq_workers_active(\{[^}]*\})? 1$/m)
    running.signal('SIGTERM')
    await running.done
  })

  it('refuses an address that is taken, before any job runs', async () => {
    const { running, url } = await serve(resizeFile)
    const { id } = await scene.chokaq.enqueue(resize, { id: 'a' }, { queue: 'elsewhere' })
    const second = await cli(['work', 'work.ts', '--http', url.slice(7), '--queues', 'elsewhere'], { cwd: scene.cwd })
    expect(second).toMatchObject({ code: 1 })
    expect(second.stderr).toMatch(/CHOKAQ_CLI_LISTEN: Cannot listen on 127\.0\.0\.1:\d+ \(EADDRINUSE\)/)
    expect(await scene.chokaq.jobs.get(id)).toMatchObject({ state: 'pending' })
    running.signal('SIGTERM')
    await running.done
  })
})

describe('telemetry whose packages are not installed', () => {
  const missing = () => Promise.reject(Object.assign(new Error('no'), { code: 'ERR_MODULE_NOT_FOUND' }))

  it('is left out, and says what to install', async () => {
    const modules = { otel: missing, endpoint: missing }
    const telemetry = await openTelemetry(scene.chokaq, true, modules)
    expect(telemetry.metrics).toBeUndefined()
    expect(telemetry.problem).toContain('npm install @opentelemetry/api')
    await telemetry.close()
    await (await openTelemetry(scene.chokaq, false, modules)).close()
  })

  it('hides no other error', async () => {
    const broken = () => Promise.reject(new TypeError('broken'))
    await expect(openTelemetry(scene.chokaq, true, { otel: broken, endpoint: broken })).rejects.toThrow('broken')
  })
})

describe('an address to listen on', () => {
  it.each([
    [':9090', { host: undefined, port: 9_090 }],
    ['9090', { host: undefined, port: 9_090 }],
    ['127.0.0.1:0', { host: '127.0.0.1', port: 0 }],
    ['localhost:80', { host: 'localhost', port: 80 }],
    ['[::1]:9090', { host: '::1', port: 9_090 }],
  ])('may be %s', (text, address) => {
    expect(listenAddress(text)).toEqual(address)
  })

  it.each(['', 'localhost', ':70000', '::1:9090', 'http://x:1', ' :1'])('may not be %j', (text) => {
    expect(() => listenAddress(text)).toThrow('Give :port')
  })
})
