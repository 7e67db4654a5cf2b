import { userInfo } from 'node:os'
import type { CliIo, StopSignal } from './io.ts'

const signals: readonly StopSignal[] = ['SIGINT', 'SIGTERM']

export function processIo(): CliIo {
  // A reader that went away (`| head`) must not end a worker: what it would have read is dropped.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
  return {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    cwd: process.cwd(),
    userName: userName(),
    onSignal(listener) {
      for (const signal of signals) process.on(signal, listener)
      return () => {
        for (const signal of signals) process.off(signal, listener)
      }
    },
    onUncaught(listener) {
      const rejected = (reason: unknown): void => {
        listener('rejection', reason)
      }
      const thrown = (error: unknown): void => {
        listener('exception', error)
      }
      process.on('unhandledRejection', rejected)
      process.on('uncaughtException', thrown)
      return () => {
        process.off('unhandledRejection', rejected)
        process.off('uncaughtException', thrown)
      }
    },
  }
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    // A container may run under a number that has no name.
    return process.env['USER'] ?? 'unknown'
  }
}
