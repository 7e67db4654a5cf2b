import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { scratchPath, userHandle } from './scratch-sqlite.ts'

const starter = fileURLToPath(new URL('fixtures/start-sqlite.ts', import.meta.url))
const starterCount = 8

/** Starts a process and gives what it says, line by line. */
function startProcess(path: string) {
  const child = spawn(process.execPath, ['--import', 'jiti/register', starter, path])
  onTestFinished(() => void child.kill('SIGKILL'))
  const errors: string[] = []
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk.toString()))
  const lines = createInterface({ input: child.stdout })
  const nextLine = async (): Promise<string> => {
    const ended = once(child, 'close').then(() => [errors.join('')])
    const [line] = (await Promise.race([once(lines, 'line'), ended])) as string[]
    return line ?? ''
  }
  return { nextLine, go: () => child.stdin.write('go\n') }
}

it('eight processes that start at once on a missing file make one schema, and all of them work', async () => {
  const path = scratchPath()
  const processes = Array.from({ length: starterCount }, () => startProcess(path))
  expect(await Promise.all(processes.map(({ nextLine }) => nextLine()))).toEqual(Array(starterCount).fill('loaded'))
  const answers = processes.map(({ nextLine }) => nextLine())
  for (const { go } of processes) go()
  expect(await Promise.all(answers)).toEqual(Array(starterCount).fill('inserted'))
  const handle = userHandle(path)
  expect(handle.prepare('SELECT count(*) AS n FROM chokaq_jobs_hot').get()).toEqual({ n: starterCount })
  expect(handle.pragma('integrity_check', { simple: true })).toBe('ok')
}, 60_000)
