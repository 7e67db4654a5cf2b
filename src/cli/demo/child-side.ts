/** A child process of the demo, seen from inside. */
import type { FromProvider, FromWorker, ToChild } from './messages.ts'

export function tellParent(message: FromProvider | FromWorker): void {
  // A parent that is gone hears nothing; untilStopped() ends this process.
  if (process.connected) process.send?.(message)
}

/** Until the parent says stop, or is gone: no child outlives it. */
export function untilStopped(): Promise<void> {
  return new Promise((resolve) => {
    process.once('disconnect', resolve)
    process.on('message', (message: ToChild) => {
      if (message.kind === 'stop') resolve()
    })
  })
}
