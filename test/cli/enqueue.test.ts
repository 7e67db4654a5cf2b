import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { cli, type CliResult } from './fake-io.ts'
import { openScene, resizeFile, userFile, type Scene } from './scene.ts'

let scene: Scene
beforeEach(async () => {
  scene = await openScene()
})
afterEach(() => scene.close())

const run = (args: readonly string[], stdin?: string | Uint8Array): Promise<CliResult> =>
  cli(args, { cwd: scene.cwd, ...(stdin === undefined ? {} : { stdin }) })
const enqueue = (...args: string[]): Promise<CliResult> => run(['enqueue', ...args])
async function storedJob(id: string) {
  const job = await scene.chokaq.jobs.get(id)
  if (job === undefined) throw new Error(`no job ${id}`)
  return job
}
function idOf(result: CliResult): string {
  return (result.json[0] as { id: string }).id
}

describe('by what a worker registered', () => {
  it('stores a job of a type without a key', async () => {
    const result = await enqueue('image.resize.v1', '{"id":"p1"}', '--json')
    expect(result).toMatchObject({ code: 0, stderr: '' })
    expect(result.json).toEqual([{ outcome: 'enqueued', id: expect.any(String) as string }])
    expect(await storedJob(idOf(result))).toMatchObject({
      type: 'image.resize.v1',
      payload: '{"id":"p1"}',
      state: 'pending',
    })
  })

  it('stores a keyed job without its key where the contract says allowRaw, and the worker runs it', async () => {
    const id = idOf(await enqueue('parcel.ship.v1', '{"order":"o1"}', '--json'))
    expect(await storedJob(id)).toMatchObject({ keyHash: null, state: 'pending' })
    await scene.work()
    expect(await storedJob(id)).toMatchObject({ state: 'completed' })
  })

  it('refuses a keyed type that does not say allowRaw', async () => {
    const result = await enqueue('payment.charge.v1', '{"order":"o1","cents":1}')
    expect(result).toMatchObject({ code: 3, stdout: '' })
    expect(result.stderr).toMatch(/^CHOKAQ_RAW_REFUSED: The type "payment.charge.v1"/)
    expect((await scene.chokaq.jobs.list('hot')).jobs).toEqual([])
  })

  it('refuses an unknown type, lists the known ones and guesses', async () => {
    const result = await enqueue('image.rezise.v1', '{}')
    expect(result.code).toBe(4)
    expect(result.stderr).toMatch(/^CHOKAQ_UNKNOWN_TYPE: .*Known: .*image\.resize\.v1/)
    expect(result.stderr).toContain('did you mean "image.resize.v1"?')
  })

  it('refuses a payload that fails the stored schema, with its path', async () => {
    const result = await enqueue('image.resize.v1', '{"id":7}')
    expect(result.code).toBe(2)
    expect(result.stderr).toMatch(/^CHOKAQ_PAYLOAD_INVALID/)
    expect(result.stderr).toContain('$.id: ')
  })
})

describe('with --jobs', () => {
  it('stores options and a key, and makes the database', async () => {
    scene.write(
      'jobs.ts',
      userFile(`
      export const pay = defineJob({ type: 'pay.v1', payload: z.object({ order: z.string() }), key: (p: { order: string }) => p.order, duplicateWindow: '1d' })
    `),
    )
    const id = randomUUID()
    const options = ['--jobs', 'jobs.ts', '--db', 'new.db', '--json', '--id', id]
    const more = [
      '--queue',
      '🦊 "quoted"',
      '--priority',
      '-5',
      '--delay',
      '1h',
      '--tag',
      'a',
      '--tag',
      'b',
      '--tenant',
      'acme',
    ]
    expect(await enqueue('pay.v1', '{"order":"o1"}', ...options, ...more)).toMatchObject({
      code: 0,
      json: [{ outcome: 'enqueued', id }],
    })
    const shown = await run(['jobs', 'show', id, '--db', 'new.db', '--json'])
    expect(shown.json).toMatchObject([
      { id, queue: '🦊 "quoted"', priority: -5, state: 'scheduled', tags: ['a', 'b'], tenant: 'acme', keyPrefix: 'o1' },
    ])
    const again = await enqueue('pay.v1', '{"order":"o1"}', '--jobs', 'jobs.ts', '--db', 'new.db', '--tenant', 'acme')
    expect(again).toMatchObject({ code: 0, stdout: `already active: job ${id} has this key\n` })
    const other = await enqueue(
      'pay.v1',
      '{"order":"o1","x":1}',
      '--jobs',
      'jobs.ts',
      '--db',
      'new.db',
      '--tenant',
      'acme',
    )
    expect(other).toMatchObject({ code: 3 })
    expect(other.stderr).toMatch(/^CHOKAQ_KEY_REUSED/)
  })

  it('takes the contract of a handler, too', async () => {
    scene.write('work.ts', resizeFile)
    expect(await enqueue('image.resize.v1', '{"id":"p1"}', '--jobs', 'work.ts')).toMatchObject({ code: 0 })
  })

  it('knows only the types of the file', async () => {
    scene.write('work.ts', resizeFile)
    const result = await enqueue('payment.charge.v1', '{}', '--jobs', 'work.ts')
    expect(result.code).toBe(4)
    expect(result.stderr).toContain('Known: image.resize.v1')
  })

  it.each([
    ['missing.ts', undefined, 4, 'CHOKAQ_CLI_FILE_MISSING'],
    ['empty.ts', 'export const x = 1', 1, 'CHOKAQ_CLI_FILE_INVALID'],
    ['broken.ts', 'export const = ', 1, 'CHOKAQ_CLI_FILE_INVALID'],
    ['throws.ts', 'throw new TypeError("no \\u001b[31mluck")', 1, 'cannot be loaded: TypeError: no '],
  ])('refuses %s', async (name, text, code, message) => {
    if (text !== undefined) scene.write(name, text)
    const result = await enqueue('image.resize.v1', '{}', '--jobs', name)
    expect(result.code).toBe(code)
    expect(result.stderr).toContain(message)
  })
})

describe('bad input', () => {
  it.each(['{id:1}', '', 'undefined', '{"id":"a"', "'{}'"])('refuses %j as JSON', async (json) => {
    const result = await enqueue('image.resize.v1', json)
    expect(result).toMatchObject({ code: 2, stdout: '' })
    expect(result.stderr).toMatch(/^CHOKAQ_CLI_JSON: The payload is no JSON/)
  })

  it('reads - from standard input, and refuses bytes that are no text', async () => {
    expect(await run(['enqueue', 'image.resize.v1', '-'], '{"id":"ünï"}')).toMatchObject({ code: 0 })
    const result = await run(['enqueue', 'image.resize.v1', '-'], new Uint8Array([0x22, 0xff, 0x22]))
    expect(result).toMatchObject({ code: 2 })
    expect(result.stderr).toContain('no UTF-8')
  })

  it('refuses a payload over the limit', async () => {
    const result = await run(['enqueue', 'image.resize.v1', '-'], JSON.stringify({ id: 'x'.repeat(1_000_001) }))
    expect(result.code).toBe(2)
    expect(result.stderr).toMatch(/^CHOKAQ_TOO_LARGE/)
    expect(result.stderr.length).toBeLessThan(500)
  })

  it.each([
    [['--priority', '5000'], 'whole number from -1000 to 1000'],
    [['--priority', 'high'], 'whole number'],
    [['--delay', 'soon'], 'delay'],
    [['--delay', '90d'], 'CHOKAQ_OPTION_INVALID'],
    [['--id', 'not-a-uuid'], 'CHOKAQ_OPTION_INVALID'],
    [['--queue', ''], 'CHOKAQ_OPTION_INVALID'],
    [['--queue', 'a\nb'], 'CHOKAQ_OPTION_INVALID'],
    [['--tenant', 'x'.repeat(200)], 'CHOKAQ_OPTION_INVALID'],
    [['--qeue', 'x'], 'unknown option'],
  ])('refuses %j as wrong usage', async (options, message) => {
    const result = await enqueue('image.resize.v1', '{"id":"a"}', ...options)
    expect(result.code).toBe(2)
    expect(result.stderr).toContain(message)
    expect((await scene.chokaq.jobs.list('hot')).jobs).toEqual([])
  })

  it('prints an error as JSON with --json', async () => {
    const result = await enqueue('nope', '{}', '--json')
    expect(result.stdout).toBe('')
    expect(JSON.parse(result.stderr)).toEqual({
      error: { code: 'CHOKAQ_UNKNOWN_TYPE', message: expect.any(String) as string, exitCode: 4 },
    })
  })

  it('shows a stack only with --verbose', async () => {
    expect((await enqueue('nope', '{}')).stderr).not.toContain('    at ')
    expect((await enqueue('nope', '{}', '--verbose')).stderr).toContain('    at ')
  })
})
