// The database on virtual time: in each statement the schema's one source of time is replaced by what the runtime's clock
// says. And the other way round: virtual time does not move while a statement is under way.
import pg from 'pg'
import type { Clock } from '../../src/core/runtime.ts'

const sourceOfTime = /(?:chokaq|"(?:[^"]|"")+")\.now_ms\(\)/g

let underWayCount = 0

/** For `createFakeRuntime`: one turn of the host's loop, and as many more as statements need for their replies. */
export async function yieldToDatabase(): Promise<void> {
  await nextTurn()
  while (underWayCount > 0) await nextTurn()
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** A pool whose clients live in the time of `clock`; the storage takes its settings and its client class. */
export function virtualPool(url: string, clock: Clock, onText: (text: string) => void = () => undefined): pg.Pool {
  class VirtualClient extends pg.Client {
    override connect(): Promise<pg.Client>
    override connect(callback: (error: Error) => void): void
    override connect(callback?: (error: Error) => void): unknown {
      if (callback !== undefined) return super.connect(callback)
      return counted(super.connect())
    }

    // The overloads of pg are of no interest to the storage, which calls it with one object; a handler's transaction
    // calls it with a text.
    override query(config: unknown, ...rest: never[]): never {
      onText(typeof config === 'string' ? config : (config as pg.QueryConfig).text)
      const isStatement = typeof config === 'object' && config !== null && 'values' in config
      const query = isStatement ? inTimeOf(clock, config as unknown as pg.QueryConfig) : config
      return counted(super.query(query as pg.QueryConfig, ...rest) as unknown as Promise<unknown>) as never
    }
  }
  return new pg.Pool({ connectionString: url, Client: VirtualClient })
}

/** The migration that makes the function has no values. A text that says the time is another one each time: no name. */
function inTimeOf(clock: Clock, { name: _, ...query }: pg.QueryConfig): pg.QueryConfig {
  return { ...query, text: query.text.replace(sourceOfTime, `${Math.floor(clock.nowMs())}::bigint`) }
}

async function counted<T>(work: Promise<T>): Promise<T> {
  underWayCount += 1
  try {
    return await work
  } finally {
    underWayCount -= 1
  }
}
