// A database per test file, made from one template that has the schema already; kept where a test of the file failed.
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { postgres } from 'chokaq/postgres'
import { createNodeRuntime } from '../../src/engine/node-runtime.ts'
import { inject, onTestFailed } from 'vitest'
import { ownedFolder, sharedServer } from './server.ts'

declare module 'vitest' {
  interface ProvidedContext {
    readonly postgresFolder: string
  }
}

const templateName = 'chokaq_test_template'
const templateLock = 727_271

export interface TestDatabase {
  readonly url: string
  readonly name: string
  /** Runs SQL past the storage. */
  query<Row>(text: string, values?: readonly unknown[]): Promise<readonly Row[]>
  /** Keeps the database after the run, for a look at it. */
  keep(): void
  drop(): Promise<void>
}

export interface DatabaseOptions {
  /** Without the schema: for tests of the installation itself. */
  readonly isEmpty?: boolean
  /** Where the server of this run is, for programs that are no test files. */
  readonly folder?: string
  /**
   * A folder for the data of this database; the server must be of this run. Only on a server of its own, in `folder`: a
   * checkpoint that cannot write there fails for every database of the server, and DROP DATABASE waits for one.
   */
  readonly disk?: string
}

export async function createDatabase(options: DatabaseOptions = {}): Promise<TestDatabase> {
  if (options.disk !== undefined && options.folder === undefined)
    throw new TypeError('a database on a disk that may be full needs a server of its own: give a folder for it')
  const folder = options.folder ?? inject('postgresFolder')
  const { url } = await sharedServer(folder)
  const name = `chokaq_test_${process.pid}_${randomBytes(4).toString('hex')}`
  if (options.isEmpty !== true) await ensureTemplate(url)
  const template = options.isEmpty === true ? 'template0' : templateName
  const tablespace = options.disk === undefined ? undefined : `${name}_disk`
  await withClient(url, async (client) => {
    if (tablespace !== undefined) {
      const place = ownedFolder(join(options.disk ?? '', name))
      await client.query(`CREATE TABLESPACE ${tablespace} LOCATION '${place}'`)
    }
    const where = tablespace === undefined ? '' : `TABLESPACE ${tablespace}`
    await client.query(`CREATE DATABASE ${name} TEMPLATE ${template} ${where}`)
  })
  const own = databaseUrl(url, name)
  const pool = new pg.Pool({ connectionString: own, max: 3 })
  pool.on('error', () => undefined)
  let isKept = false
  return {
    url: own,
    name,
    async query<Row>(text: string, values: readonly unknown[] = []) {
      return (await pool.query(text, [...values])).rows as Row[]
    },
    keep() {
      isKept = true
    },
    async drop() {
      await pool.end()
      if (isKept) writeFileSync(join(folder, 'keep'), `${own}\n`, { flag: 'a' })
      else await withClient(url, (client) => client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`))
      if (tablespace !== undefined) await withClient(url, (client) => client.query(`DROP TABLESPACE ${tablespace}`))
    },
  }
}

/** Called in a test: where it fails, the database stays. */
export function keepOnFailure(database: TestDatabase): void {
  onTestFailed(() => database.keep())
}

/** Installed by the first that needs it; the others wait for its lock. */
async function ensureTemplate(url: string): Promise<void> {
  await withClient(url, async (client) => {
    await client.query('SELECT pg_advisory_lock($1)', [templateLock])
    const { rows } = await client.query('SELECT datistemplate FROM pg_database WHERE datname = $1', [templateName])
    if ((rows as { datistemplate: boolean }[])[0]?.datistemplate === true) return
    // Half made by a run that died.
    await client.query(`DROP DATABASE IF EXISTS ${templateName} WITH (FORCE)`)
    await client.query(`CREATE DATABASE ${templateName} TEMPLATE template0`)
    const driver = postgres(databaseUrl(url, templateName)).open(createNodeRuntime())
    try {
      await driver.ready()
    } finally {
      await driver.close()
    }
    await client.query(`ALTER DATABASE ${templateName} IS_TEMPLATE true`)
  })
}

export function databaseUrl(url: string, name: string): string {
  const made = new URL(url)
  made.pathname = `/${name}`
  return made.href
}

export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}
