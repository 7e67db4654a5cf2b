/** 'chokaq/postgres': jobs in a PostgreSQL database that many machines share. */
import { createHash } from 'node:crypto'
import { unknownKeyProblem } from '../../core/did-you-mean.ts'
import { ChokaQError } from '../../core/errors.ts'
import type { Storage, StorageCapabilities } from '../../core/storage.ts'
import type { Durability } from './connection.ts'
import { isPool, type PgPoolLike, targetOf } from './pg-driver.ts'
import { defaultSchema, SchemaName } from './schema-name.ts'
import { PostgresStorageDriver } from './storage.ts'

export type { Durability } from './connection.ts'
export type { PgPoolLike } from './pg-driver.ts'
export { type DrizzleSql, fromDrizzle, fromKnex, type WrappedTransaction } from './user-transaction.ts'

export interface PostgresOptions {
  /** The schema that holds the tables; any name. Defaults to 'chokaq'. */
  readonly schema?: string
  /** Connections for enqueue, fetch, sweep and operators. Outcomes, heartbeat and LISTEN have four more. Defaults to 4. */
  readonly poolSize?: number
  /** Connections for ctx.transaction, so handlers that run in one at the same time. Defaults to 4. */
  readonly handlerPoolSize?: number
  /**
   * `full` waits until the server has flushed a commit; `relaxed` may lose the newest commits with the server's power.
   * Defaults to 'full'.
   */
  readonly durability?: Durability
  /** Makes and upgrades the tables with the first use. Defaults to true; without it, reading and writing rows is enough. */
  readonly migrate?: boolean
  /**
   * 'transaction' behind a pooler that gives each transaction another session: no settings of the session, and polling
   * instead of LISTEN. Defaults to 'none'.
   */
  readonly pooler?: 'none' | 'transaction'
  /** Whether commits wake other processes by NOTIFY. Defaults to true, and is always false behind such a pooler. */
  readonly listen?: boolean
  /** How long a statement may take, milliseconds. Defaults to 5,000. */
  readonly statementDeadlineMs?: number
  /** How long a statement waits for a lock, milliseconds. Defaults to 200. */
  readonly lockTimeoutMs?: number
}

const defaults = {
  poolSize: 4,
  handlerPoolSize: 4,
  statementDeadlineMs: 5_000,
  lockTimeoutMs: 200,
  connectDeadlineMs: 5_000,
} as const

const optionNames = [
  'schema',
  'poolSize',
  'handlerPoolSize',
  'durability',
  'migrate',
  'pooler',
  'listen',
  'statementDeadlineMs',
  'lockTimeoutMs',
] as const satisfies readonly (keyof PostgresOptions)[]

/**
 * A storage in the PostgreSQL database behind a URL. A pool of the package `pg` lends its settings instead; connections
 * are always this storage's own. Costs nothing until it is used.
 *
 * @example
 * const chokaq = createChokaQ({ storage: postgres('postgres://localhost/app') })
 */
export function postgres(urlOrPool: string | PgPoolLike, options: PostgresOptions = {}): Storage {
  if (typeof urlOrPool !== 'string' && !isPool(urlOrPool)) {
    const problem = 'postgres() takes a URL or a pool of the package pg'
    throw new ChokaQError('CHOKAQ_CONFIG_INVALID', { problem })
  }
  const unknown = unknownKeyProblem(options, optionNames, 'postgres')
  if (unknown !== undefined) throw new ChokaQError('CHOKAQ_CONFIG_INVALID', { problem: unknown })
  const { migrate = true, listen = true } = options
  const durability = oneOf(['full', 'relaxed'], options.durability ?? 'full', 'durability')
  const pooler = oneOf(['none', 'transaction'], options.pooler ?? 'none', 'pooler')
  const schema = new SchemaName(options.schema ?? defaultSchema)
  const isPooled = pooler === 'transaction'
  const target = targetOf(urlOrPool)
  const capabilities: StorageCapabilities = {
    supportsListen: listen && !isPooled,
    sharedByMachines: true,
    supportsSyncTransactions: false,
    supportsAsyncTransactions: true,
  }
  const settings = {
    target,
    durability,
    isPooled,
    statementDeadlineMs: atLeast(1, options.statementDeadlineMs ?? defaults.statementDeadlineMs, 'statementDeadlineMs'),
    lockTimeoutMs: atLeast(1, options.lockTimeoutMs ?? defaults.lockTimeoutMs, 'lockTimeoutMs'),
    connectDeadlineMs: defaults.connectDeadlineMs,
  }
  const poolSize = atLeast(1, options.poolSize ?? defaults.poolSize, 'poolSize')
  const handlerPoolSize = atLeast(1, options.handlerPoolSize ?? defaults.handlerPoolSize, 'handlerPoolSize')
  const channel = channelOf(schema.name)
  return {
    capabilities,
    location: target.location,
    open: (runtime) =>
      new PostgresStorageDriver({
        settings,
        schema,
        channel,
        poolSize,
        handlerPoolSize,
        migrate,
        capabilities,
        runtime,
      }),
  }
}

/** One fixed channel per schema. A name is cut at 63 bytes, so that of another schema goes in as a hash. */
function channelOf(schema: string): string {
  if (schema === defaultSchema) return 'chokaq_wake'
  return `chokaq_wake_${createHash('sha256').update(schema, 'utf8').digest('hex').slice(0, 16)}`
}

function oneOf<T extends string>(values: readonly T[], value: T, option: string): T {
  if (values.includes(value)) return value
  throw new ChokaQError('CHOKAQ_OPTION_INVALID', { option, value: String(value), expected: values.join(' or ') })
}

function atLeast(least: number, value: number, option: string): number {
  if (Number.isInteger(value) && value >= least) return value
  throw new ChokaQError('CHOKAQ_OPTION_INVALID', {
    option,
    value: String(value),
    expected: `a whole number of at least ${least}`,
  })
}
