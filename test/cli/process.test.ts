import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openScene, resize, resizeFile, userFile, type Scene } from './scene.ts'
import { spawnCli } from './spawned-cli.ts'

let scene: Scene
beforeEach(async () => {
  scene = await openScene()
})
afterEach(() => scene.close())

/** The handler ends a while after its signal, or never; what else it does stands in `body`. */
const handlerFile = (body: string, settings = ''): string =>
  userFile(`
const resize = defineJob({ type: 'image.resize.v1', payload: z.object({ id: z.string() }) })
export const handlers = [
  defineHandler(resize, { sideEffects: 'none', async run(p: { id: string }, ctx) { ${body} } }),
]
${settings}
`)

describe.skipIf(process.platform === 'win32')('chokaq as a process', () => {
  it('ends with the exit code of its command', async () => {
    const unknown = spawnCli(['jobs', 'show', 'nobody', '--json'], scene.cwd)
    expect(await unknown.done).toBe(4)
    expect(JSON.parse(unknown.stderr())).toMatchObject({ error: { code: 'CHOKAQ_JOB_NOT_FOUND', exitCode: 4 } })
    const version = spawnCli(['--version'], scene.cwd)
    expect(await version.done).toBe(0)
    expect(version.stdout()).toMatch(/^\d+\.\d+\.\d+\n$/)
  })

  it('stops gracefully on SIGTERM: the running handler finishes', async () => {
    scene.write(
      'work.ts',
      handlerFile(
        `ctx.log('begun'); await new Promise((resolve) => process.once('SIGTERM', () => setImmediate(resolve)))`,
      ),
    )
    const { id } = await scene.chokaq.enqueue(resize, { id: 'a' })
    const worker = spawnCli(['work', 'work.ts'], scene.cwd)
    await worker.line(/job\.log/)
    worker.child.kill('SIGTERM')
    expect(await worker.done).toBe(0)
    expect(worker.stdout()).toContain('cli.signal signal=SIGTERM force=false runningCount=1')
    expect(await scene.chokaq.jobs.get(id)).toMatchObject({ state: 'completed' })
  })

  it('is forced by a second signal, though a handler never ends; the job goes on elsewhere', async () => {
    const settings = `export const worker = { abortGrace: '50ms' }`
    scene.write(
      'work.ts',
      handlerFile(`ctx.log('begun'); await new Promise(() => setInterval(() => undefined, 1000))`, settings),
    )
    const { id } = await scene.chokaq.enqueue(resize, { id: 'a' })
    const worker = spawnCli(['work', 'work.ts'], scene.cwd)
    await worker.line(/job\.log/)
    worker.child.kill('SIGINT')
    await worker.line(/force=false/)
    worker.child.kill('SIGINT')
    await worker.line(/force=true/)
    worker.child.kill('SIGINT')
    expect(await worker.done).toBe(130)
    expect((await scene.chokaq.jobs.get(id))?.pillar).toBe('hot')
  })

  it('survives a promise that a handler left behind', async () => {
    scene.write('work.ts', handlerFile(`ctx.log('left'); void Promise.reject(new Error('left behind by ' + p.id))`))
    await scene.chokaq.enqueue(resize, { id: 'a' })
    const worker = spawnCli(['work', 'work.ts', '--verbose'], scene.cwd)
    await worker.line(/cli\.unhandled_rejection failure="Error: left behind by a"/)
    const { id } = await scene.chokaq.enqueue(resize, { id: 'b' })
    await worker.line(new RegExp(`job\\.completed .*${id}`))
    worker.child.kill('SIGTERM')
    expect(await worker.done).toBe(0)
  })

  it('works on when nobody reads its output any more', async () => {
    scene.write('work.ts', resizeFile)
    const worker = spawnCli(['work', 'work.ts', '--json'], scene.cwd)
    await worker.line(/worker\.started/)
    worker.child.stdout.destroy()
    worker.child.stderr.destroy()
    const { id } = await scene.chokaq.enqueue(resize, { id: 'a' })
    let state: string | undefined
    while (state !== 'completed' && worker.child.exitCode === null) {
      state = (await scene.chokaq.jobs.get(id))?.state
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(state).toBe('completed')
    worker.child.kill('SIGTERM')
    expect(await worker.done).toBe(0)
  })

  it('lets two copies of chokaq meet: contracts of a compiled package are recognised', async () => {
    // A native import inside the file bypasses the loader and gets a copy of its own.
    const contract = new URL('../../src/core/contract.ts', import.meta.url).pathname
    scene.write(
      'jobs.ts',
      `import { defineJob } from ${JSON.stringify(contract)}\n${userFile('').split('\n')[2]}\nexport const job = defineJob({ type: 'other.v1', payload: z.object({}) })`,
    )
    const enqueue = spawnCli(['enqueue', 'other.v1', '{}', '--jobs', 'jobs.ts', '--json'], scene.cwd)
    expect(await enqueue.done).toBe(0)
    expect(JSON.parse(enqueue.stdout())).toMatchObject({ outcome: 'enqueued' })
  })
})
