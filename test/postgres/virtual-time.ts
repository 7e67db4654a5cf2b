// The database on virtual time: each statement first tells its session what time the runtime has, and the schema's one
// source of time answers with that. And the other way round: virtual time does not move while a statement is under way.
import pg from 'pg'
import type { FakeRuntime } from '../../src/testing/fake-runtime.ts'
import type { TestDatabase } from './database.ts'

const readSetting = `SELECT coalesce(nullif(current_setting('chokaq.test_now_ms', true), '')::bigint,
  floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)`

/** Replaces the clock in the schema of a test's own database. */
export async function installVirtualTime(database: TestDatabase, schema = 'chokaq'): Promise<void> {
  await database.query(
    `CREATE OR REPLACE FUNCTION "${schema.replaceAll('"', '""')}".now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS $$ ${readSetting} $$`,
  )
}

let underWayCount = 0

/** For `createFakeRuntime`: one turn of the host's loop, and as many more as statements need for their replies. */
export async function yieldToDatabase(): Promise<void> {
  await nextTurn()
  while (underWayCount > 0) await nextTurn()
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** A pool whose clients live in the time of `runtime`; the storage takes its settings and its client class. */
export function virtualPool(url: string, runtime: FakeRuntime): pg.Pool {
  class VirtualClient extends pg.Client {
    /** What the session was told; time stands still for many statements. */
    #toldMs: number | undefined

    override connect(): Promise<pg.Client>
    override connect(callback: (error: Error) => void): void
    override connect(callback?: (error: Error) => void): unknown {
      if (callback !== undefined) return super.connect(callback)
      return counted(super.connect())
    }

    // The overloads of pg are of no interest to the storage, which calls it with one object.
    override query(config: unknown): never {
      const now = Math.floor(runtime.clock.nowMs())
      const run = async (): Promise<unknown> => {
        if (this.#toldMs !== now) {
          // In an aborted transaction nothing may be set any more, and nothing needs to be.
          await super.query(`SET chokaq.test_now_ms = ${now}`).catch(() => undefined)
          this.#toldMs = now
        }
        // A rollback takes a setting back with it.
        if ((config as pg.QueryConfig).text === 'ROLLBACK') this.#toldMs = undefined
        return super.query(config as pg.QueryConfig)
      }
      return counted(run()) as never
    }
  }
  return new pg.Pool({ connectionString: url, Client: VirtualClient })
}

async function counted<T>(work: Promise<T>): Promise<T> {
  underWayCount += 1
  try {
    return await work
  } finally {
    underWayCount -= 1
  }
}
