/**
 * The small seam between the storage and the package `pg`: what is used of a client, and nothing else. A pool of the
 * user's own lends its settings (address, password function, TLS, a client class of its own), never its connections:
 * user code that holds all of them must not cost a worker its leases.
 */
import { createRequire } from 'node:module'
import { ChokaQError } from '../../core/errors.ts'

export interface PgQuery {
  /** Prepared under this name with the first use on a connection. */
  readonly name?: string
  readonly text: string
  readonly values?: readonly unknown[]
  readonly types?: { getTypeParser(oid: number): (text: string) => unknown }
  readonly query_timeout?: number
}

export interface PgResult {
  readonly rows: readonly unknown[]
}

export interface PgClient {
  connect(): Promise<unknown>
  query(query: PgQuery): Promise<unknown>
  end(): Promise<unknown>
  on(event: string, listener: (...details: readonly never[]) => void): unknown
  ref?(): void
  unref?(): void
  getTransactionStatus?(): string | null
}

export type PgSettings = Readonly<Record<string, unknown>>
export type PgClientClass = new (settings: PgSettings) => PgClient

/** A pool of `pg`, as far as its settings are taken from it. */
export interface PgPoolLike {
  readonly options: object
  readonly Client?: unknown
}

export function isPool(value: unknown): value is PgPoolLike {
  if (typeof value !== 'object' || value === null) return false
  const { options, connect } = value as { readonly options?: unknown; readonly connect?: unknown }
  return typeof options === 'object' && options !== null && typeof connect === 'function'
}

/** Where to connect, and with which client class. */
export interface PgTarget {
  readonly settings: PgSettings
  readonly clientClass: () => PgClientClass
  /** Without credentials, for messages. */
  readonly location: string
}

export function targetOf(urlOrPool: string | PgPoolLike): PgTarget {
  if (typeof urlOrPool === 'string') {
    return {
      settings: { connectionString: urlOrPool },
      clientClass: loadClient,
      location: withoutCredentials(urlOrPool),
    }
  }
  const { options, Client } = urlOrPool
  // A pool hides its password from enumeration.
  const { password } = options as { readonly password?: unknown }
  const { connectionString, host, database } = options as Readonly<Record<string, unknown>>
  return {
    settings: { ...options, ...(password === undefined ? {} : { password }) },
    clientClass: typeof Client === 'function' ? () => Client as PgClientClass : loadClient,
    location:
      typeof connectionString === 'string'
        ? withoutCredentials(connectionString)
        : `postgres://${typeof host === 'string' ? host : ''}/${typeof database === 'string' ? database : ''}`,
  }
}

/** Host, port and database of a URL; nothing of a text that is none, because a password may stand anywhere in it. */
function withoutCredentials(url: string): string {
  try {
    const { protocol, host, pathname } = new URL(url)
    return `${protocol}//${host}${pathname}`
  } catch {
    return 'postgres://'
  }
}

/** Loaded with the first connection, so that a producer of another storage never needs the package. */
function loadClient(): PgClientClass {
  try {
    const pg = createRequire(import.meta.url)('pg') as { readonly Client: PgClientClass }
    return pg.Client
  } catch (cause) {
    throw new ChokaQError('CHOKAQ_DRIVER_MISSING', { packageName: 'pg' }, { cause })
  }
}

/** int8, int2, int4 and float8. */
const numberTypes = new Set([20, 21, 23, 701])
const booleanType = 16

/** Numbers for numbers (1 and 0 for booleans), the text for the rest: JSON is kept to the letter. */
export const rowTypes = {
  getTypeParser: (oid: number): ((text: string) => unknown) => {
    if (numberTypes.has(oid)) return Number
    return oid === booleanType ? (text) => (text === 't' ? 1 : 0) : (text) => text
  },
}
