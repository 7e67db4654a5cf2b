// The storages under which every example is tested. A new one joins by adding a row here.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Storage } from 'chokaq'
import { sqlite } from 'chokaq/sqlite'
import { afterEach } from 'vitest'
import { SqliteShop, type Shop } from '../../examples/outbox/shop.ts'
import { SqlitePayments, type Payments } from '../../examples/unique-constraint/payments.ts'

/** A fresh database of jobs, with the application's own tables beside them. */
export interface ExamplePlace {
  readonly storage: Storage
  payments(): Payments
  shop(): Shop
}

export interface ExampleStorage {
  readonly name: string
  open(): ExamplePlace
}

let closers: (() => void)[] = []
afterEach(() => {
  const all = closers
  closers = []
  for (const close of all.reverse()) close()
})

function closing<T extends { close(): void }>(one: T): T {
  closers.push(() => {
    one.close()
  })
  return one
}

/** Memory that looks like a disk, where there is any: nothing here tests the loss of power. */
const fastFolder = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

export const storages: readonly ExampleStorage[] = [
  {
    name: 'sqlite',
    open() {
      const folder = mkdtempSync(join(fastFolder, 'chokaq-example-'))
      closers.push(() => {
        rmSync(folder, { recursive: true, force: true })
      })
      const path = join(folder, 'shop.db')
      return {
        storage: sqlite(path),
        payments: () => closing(new SqlitePayments(path)),
        shop: () => closing(new SqliteShop(path)),
      }
    },
  },
]
