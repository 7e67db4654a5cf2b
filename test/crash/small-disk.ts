// A disk that can be filled without harm to anybody: a file system of its own in memory, as large as the test says. The
// kernel then says ENOSPC, as it does of a real disk. Only who may mount can have one.
import { spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface SmallDisk {
  readonly folder: string
  /** Until not one more page can be written. */
  readonly fill: () => void
  readonly free: () => void
  /** Gives the place back; what is open on it goes with the process. */
  readonly remove: () => void
}

const megabyte = 1024 * 1024

/** Undefined where this process may not mount: it is not root, or a container without the right. */
export function smallDisk(megabytes: number): SmallDisk | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'chokaq-disk-'))
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=755`, 'tmpfs', folder])
  if (mounted.error !== undefined || mounted.status !== 0) {
    rmdirSync(folder)
    return undefined
  }
  const ballast = join(folder, 'ballast')
  return {
    folder,
    fill() {
      const file = openSync(ballast, 'w')
      for (const bytes of [megabyte, 4_096]) while (isWritten(file, Buffer.alloc(bytes))) continue
      closeSync(file)
    },
    free() {
      rmSync(ballast, { force: true })
    },
    remove() {
      spawnSync('umount', ['--lazy', folder])
      rmdirSync(folder)
    },
  }
}

function isWritten(file: number, bytes: Buffer): boolean {
  try {
    return writeSync(file, bytes) > 0
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return false
    throw error
  }
}
