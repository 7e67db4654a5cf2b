/**
 * A progress bar for people who wait at a terminal. It only writes: a prompt library's bar takes over the keyboard and
 * ends the process with 0 on Ctrl+C, in the middle of a bulk act.
 */
import type { CliIo } from './io.ts'
import type { Output } from './output.ts'

const barWidth = 30

export interface Progress {
  advance(count: number): void
  end(): void
}

export function progressBar(io: CliIo, out: Output, total: number): Progress {
  if (out.json || io.stderr.isTTY !== true || total < 2) return { advance: () => undefined, end: () => undefined }
  let done = 0
  const draw = (): void => {
    const filled = Math.floor((barWidth * Math.min(done, total)) / total)
    io.stderr.write(`\r${'█'.repeat(filled)}${'░'.repeat(barWidth - filled)} ${done}/${total}`)
  }
  draw()
  return {
    advance(count) {
      done += count
      draw()
    },
    end() {
      io.stderr.write('\n')
    },
  }
}
