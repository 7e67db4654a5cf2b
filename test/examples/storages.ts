// The storages under which every example is tested. A new one joins by adding a row here.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Storage } from 'chokaq'
import { sqlite } from 'chokaq/sqlite'
import { createFakeRuntime, type FakeRuntime } from 'chokaq/testing'
import type { Pool } from 'pg'
import { afterEach } from 'vitest'
import { PostgresShop } from '../../examples/outbox/postgres-shop.ts'
import { SqliteShop, type Shop } from '../../examples/outbox/shop.ts'
import { SqlitePayments, type Payments } from '../../examples/unique-constraint/payments.ts'
import { PostgresPayments } from '../../examples/unique-constraint/postgres-payments.ts'
import { postgresOnServer } from '../engine/postgres-storage.ts'
import { virtualPool } from '../postgres/virtual-time.ts'

/** A fresh database of jobs, with the application's own tables beside them, and the virtual time they live in. */
export interface ExamplePlace {
  readonly storage: Storage
  readonly runtime: FakeRuntime
  payments(): Promise<Payments>
  shop(): Promise<Shop>
}

export interface ExampleStorage {
  readonly name: string
  open(): ExamplePlace
}

let closers: (() => void | Promise<void>)[] = []
afterEach(async () => {
  const all = closers
  closers = []
  for (const close of all.reverse()) await close()
})

function closing<T extends { close(): void }>(one: T): T {
  closers.push(() => {
    one.close()
  })
  return one
}

/** Memory that looks like a disk, where there is any: nothing here tests the loss of power. */
const fastFolder = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

const onFile: ExampleStorage = {
  name: 'sqlite',
  open() {
    const folder = mkdtempSync(join(fastFolder, 'chokaq-example-'))
    closers.push(() => {
      rmSync(folder, { recursive: true, force: true })
    })
    const path = join(folder, 'shop.db')
    return {
      storage: sqlite(path),
      runtime: createFakeRuntime(),
      payments: async () => closing(new SqlitePayments(path)),
      shop: async () => closing(new SqliteShop(path)),
    }
  },
}

const server = await postgresOnServer()
let schemaCount = 0

const onServer: ExampleStorage = {
  name: 'postgres',
  open() {
    const { storage, path } = server.open()
    const { yieldToHost } = server
    const runtime = createFakeRuntime(yieldToHost === undefined ? {} : { yieldToHost })
    schemaCount += 1
    const schema = `app_${schemaCount}`
    const openPool = async (): Promise<Pool> => {
      const url = new URL(path)
      url.searchParams.set('options', `-c search_path=${schema}`)
      const pool = virtualPool(url.href, runtime.clock)
      closers.push(() => pool.end())
      await pool.query(`CREATE SCHEMA ${schema}`)
      return pool
    }
    return {
      storage,
      runtime,
      async payments() {
        // One connection that is there beforehand: virtual time waits for its statements, and not for connects.
        const client = await (await openPool()).connect()
        closers.push(() => {
          client.release()
        })
        const payments = new PostgresPayments(client)
        await payments.createTable()
        return payments
      },
      async shop() {
        const shop = new PostgresShop(await openPool())
        await shop.createTable()
        return shop
      },
    }
  },
}

export const storages: readonly ExampleStorage[] = [onFile, onServer]
