// Starts the real command line in a process of its own, straight from src/.
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'

const bin = fileURLToPath(new URL('../../src/cli/bin.ts', import.meta.url))
const register = new URL('../../node_modules/jiti/lib/jiti-register.mjs', import.meta.url).href
const standardDeadlineMs = 15_000

export interface SpawnedCli {
  readonly child: ChildProcessByStdio<null, Readable, Readable>
  /** How it ended: its exit code, or the signal that killed it. */
  readonly done: Promise<number | NodeJS.Signals | null>
  /** The first line of stdout that matches, now or later. */
  line(pattern: RegExp): Promise<string>
  stdout(): string
  stderr(): string
}

export function spawnCli(args: readonly string[], cwd: string, deadlineMs = standardDeadlineMs): SpawnedCli {
  const child = spawn(process.execPath, ['--conditions=chokaq-source', '--import', register, bin, ...args], {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'] },
  })
  const guard = setTimeout(() => child.kill('SIGKILL'), deadlineMs)
  const text = { stdout: '', stderr: '' }
  let waiting: (() => void)[] = []
  const heard = (): void => {
    for (const look of waiting) look()
  }
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text.stdout += chunk
    heard()
  })
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (text.stderr += chunk))
  const done = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.on('close', (code, signal) => {
      clearTimeout(guard)
      resolve(code ?? signal)
      heard()
    })
  })
  const line = (pattern: RegExp): Promise<string> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const found = text.stdout.split('\n').find((each) => pattern.test(each))
        if (found === undefined && child.exitCode === null && child.signalCode === null) return
        waiting = waiting.filter((each) => each !== look)
        if (found !== undefined) resolve(found)
        else reject(new Error(`it ended without ${pattern}:\n${text.stdout}\n${text.stderr}`))
      }
      waiting.push(look)
      look()
    })
  return { child, done, line, stdout: () => text.stdout, stderr: () => text.stderr }
}
