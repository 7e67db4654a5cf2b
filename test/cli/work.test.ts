import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { cli, startCli, type RunningCli } from './fake-io.ts'
import { openScene, resize, resizeFile, userFile, type Scene } from './scene.ts'

let scene: Scene
beforeEach(async () => {
  scene = await openScene()
})
afterEach(() => scene.close())

function work(...args: string[]): RunningCli {
  return startCli(['work', 'work.ts', ...args], { cwd: scene.cwd })
}

/** A handler that never returns, whatever its signal says; it logs that it runs. */
const stuckFile = userFile(`
export const handlers = [
  defineHandler(defineJob({ type: 'image.resize.v1', payload: z.object({ id: z.string() }) }), {
    sideEffects: 'none',
    async run(p: { id: string }, ctx) {
      ctx.log('stuck')
      await new Promise(() => undefined)
    },
  }),
]
export const worker = { abortGrace: '50ms', shutdownGrace: '10m', killDeadline: '20m' }
`)

describe('a run', () => {
  it('runs jobs, is quiet about what went well, and stops gracefully with the first signal', async () => {
    scene.write('work.ts', resizeFile)
    const good = await scene.chokaq.enqueue(resize, { id: 'good' })
    const bad = await scene.chokaq.enqueue(resize, { id: 'bad' })
    const running = work()
    await running.line(/job\.dead/)
    await running.line(/job\.log .*"resizing good"/)
    running.signal('SIGTERM')
    const { code, stdout, stderr } = await running.done
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const time = String.raw`\d{4}-\d\d-\d\dT[\d:.]+Z`
    expect(stdout).toMatch(new RegExp(`^${time} worker\\.started workerId=\\S+ concurrency=10$`, 'm'))
    expect(stdout).toMatch(new RegExp(`^${time} job\\.dead .*jobId=${bad.id} .*reason=FatalError`, 'm'))
    expect(stdout).toMatch(/ cli\.signal signal=SIGTERM force=false runningCount=0$/m)
    expect(stdout).toMatch(/ worker\.stopped /)
    expect(stdout).not.toContain('job.completed')
    expect(await scene.chokaq.jobs.get(good.id)).toMatchObject({ state: 'completed' })
    expect(running.listenerCount()).toBe(0)
  })

  it('prints everything with --verbose, and every event as a JSON line with --json', async () => {
    scene.write('work.ts', resizeFile)
    await scene.chokaq.enqueue(resize, { id: 'good' })
    const verbose = work('--verbose')
    await verbose.line(/job\.completed/)
    verbose.signal('SIGINT')
    expect(await verbose.done).toMatchObject({ code: 0 })

    await scene.chokaq.enqueue(resize, { id: 'good' })
    const json = work('--json')
    await json.line(/"name":"job\.completed"/)
    json.signal('SIGINT')
    const { json: lines } = await json.done
    expect(lines).toContainEqual(
      expect.objectContaining({ name: 'job.log', message: 'resizing good', at: expect.any(String) as string }),
    )
  })

  it('serves only the queues it is told to', async () => {
    scene.write('work.ts', resizeFile)
    const here = await scene.chokaq.enqueue(resize, { id: 'here' }, { queue: 'a' })
    const there = await scene.chokaq.enqueue(resize, { id: 'there' }, { queue: 'c' })
    const running = work('--queues', 'a, b', '--concurrency', '2', '--verbose')
    await running.line(new RegExp(`job\\.completed .*${here.id}`))
    running.signal('SIGTERM')
    expect((await running.done).stdout).toContain('concurrency=2')
    expect(await scene.chokaq.jobs.get(there.id)).toMatchObject({ state: 'pending' })
  })
})

describe('a stop', () => {
  it('is forced by the second signal; the third changes nothing', async () => {
    scene.write('work.ts', stuckFile)
    const { id } = await scene.chokaq.enqueue(resize, { id: 'a' })
    const running = work()
    await running.line(/job\.log/)
    running.signal('SIGINT')
    await running.line(/cli\.signal .*force=false runningCount=1/)
    running.signal('SIGTERM')
    running.signal('SIGINT')
    expect(await running.done).toMatchObject({ code: 143 })
    expect(await scene.chokaq.jobs.get(id)).toMatchObject({
      state: expect.stringMatching(/pending|scheduled/) as string,
    })
  })

  it('says 130 for Ctrl+C', async () => {
    scene.write('work.ts', stuckFile)
    await scene.chokaq.enqueue(resize, { id: 'a' })
    const running = work()
    await running.line(/job\.log/)
    running.signal('SIGINT')
    running.signal('SIGINT')
    expect(await running.done).toMatchObject({ code: 130 })
  })
})

describe('what nobody caught', () => {
  it('is reported where a promise was left behind, and the worker goes on', async () => {
    scene.write('work.ts', resizeFile)
    const running = work()
    await running.line(/worker\.started/)
    running.uncaught('rejection', new TypeError('left behind\nforged line'))
    await running.line(/cli\.unhandled_rejection failure="TypeError: left behind forged line"/)
    await scene.chokaq.enqueue(resize, { id: 'bad' })
    await running.line(/job\.dead/)
    running.signal('SIGTERM')
    expect(await running.done).toMatchObject({ code: 0 })
  })

  it('ends the worker by force after an exception', async () => {
    scene.write('work.ts', stuckFile)
    await scene.chokaq.enqueue(resize, { id: 'a' })
    const running = work()
    await running.line(/job\.log/)
    running.uncaught('exception', new Error('broken'))
    const { code, stdout } = await running.done
    expect(code).toBe(1)
    expect(stdout).toContain('cli.uncaught_exception failure="Error: broken"')
  })
})

describe('a file', () => {
  const check = (text: string, args: readonly string[] = []) => {
    scene.write('work.ts', text)
    return cli(['work', 'work.ts', ...args], { cwd: scene.cwd })
  }

  it.each([
    ['export const x = 1', 'exports no array "handlers"'],
    ['export const handlers = []', 'empty array'],
    ['export const handlers = [{}]', 'no handler at handlers[0]'],
    ['export default 7', 'exports no array "handlers"'],
  ])('that declares %j is refused', async (text, message) => {
    const result = await check(text)
    expect(result.code).toBe(1)
    expect(result.stderr).toContain(message)
  })

  it.each([
    ['export const worker = 3', 1, 'must be an object'],
    [`export const worker = { queues: 'a' }`, 1, 'no array of names'],
    ['export const worker = { middleware: [1] }', 1, 'no array of functions'],
    ['export const worker = { concurency: 3 }', 2, 'did you mean "concurrency"?'],
    [`export const worker = { fenceAfter: '29s' }`, 3, 'CHOKAQ_BOOT_REFUSED'],
    [`export const client = { maxDelai: '1d' }`, 2, 'did you mean "maxDelay"?'],
  ])('with %j is refused', async (settings, code, message) => {
    const result = await check(`${resizeFile}\n${settings}`)
    expect(result.code).toBe(code)
    expect(result.stderr).toContain(message)
  })

  it('with two handlers of one type is refused', async () => {
    const result = await check(`${resizeFile}\nhandlers.push(handlers[0])`)
    expect(result.code).toBe(2)
    expect(result.stderr).toContain('two handlers')
  })

  it.each(['export default { handlers, worker: { concurrency: 3 } }', 'export default handlers'])(
    'may %s',
    async (tail) => {
      scene.write('work.ts', `${resizeFile.replace('export const handlers =', 'const handlers =')}\n${tail}`)
      const running = work()
      expect(await running.line(/worker\.started/)).toContain(
        tail.includes('concurrency') ? 'concurrency=3' : 'concurrency=10',
      )
      running.signal('SIGTERM')
      expect(await running.done).toMatchObject({ code: 0 })
    },
  )

  it.each([
    ['--concurrency', '0'],
    ['--concurrency', 'x'],
    ['--queues', 'a,,b'],
  ])('with %s %s is wrong usage', async (...args) => {
    expect(await check(resizeFile, args)).toMatchObject({ code: 2 })
  })
})
