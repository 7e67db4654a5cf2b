/** The thread behind reader.ts: one read-only connection, one call after the other. */
import { createRequire } from 'node:module'
import { parentPort, workerData } from 'node:worker_threads'
import { ChokaQError } from '../../core/errors.ts'
import { type BetterSqlite3Handle, wrapBetterSqlite3 } from './database.ts'
import { SqliteInspector } from './inspector.ts'
import type { ThreadAnswer, ThreadCall } from './reader.ts'
import { Session } from './session.ts'
import { translated } from './sqlite-errors.ts'
import { Transaction } from './write-transaction.ts'

type Open = new (path: string, options: object) => BetterSqlite3Handle

const { path } = workerData as { readonly path: string }
/** Nobody's event loop waits here, so SQLite may. */
const busyMs = 2_000
const cacheKilobytes = 16_000

let opened: Session | undefined
let nowMs = 0

function session(): Session {
  if (opened === undefined) {
    const Database = createRequire(import.meta.url)('better-sqlite3') as Open
    const db = wrapBetterSqlite3(new Database(path, { readonly: true, fileMustExist: true, timeout: busyMs }))
    db.exec(`PRAGMA cache_size = -${cacheKilobytes}`)
    opened = new Session(db)
  }
  return opened
}

const inspector = new SqliteInspector({
  async read(_call, work) {
    const own = session()
    // Several statements of one read see one state of the file.
    own.db.exec('BEGIN')
    try {
      return work(new Transaction(own, nowMs, false, path))
    } finally {
      own.db.exec('ROLLBACK')
    }
  },
  write(call) {
    throw new ChokaQError('CHOKAQ_ASSERTION', { what: `${call} is no read` })
  },
})

async function answer(call: ThreadCall): Promise<ThreadAnswer> {
  nowMs = call.nowMs
  try {
    const reads = inspector as unknown as Readonly<Record<string, (...args: readonly unknown[]) => Promise<unknown>>>
    return { id: call.id, value: await reads[call.method]?.(...call.args) }
  } catch (thrown) {
    const error = translated(thrown, path, busyMs)
    if (error instanceof ChokaQError) {
      const { code, details } = error as ChokaQError
      return { id: call.id, code, details }
    }
    const problem = error instanceof Error ? error.message : String(error)
    return { id: call.id, code: 'CHOKAQ_STORAGE_FAILED', details: { problem } }
  }
}

parentPort?.on('message', (call: ThreadCall) => {
  void answer(call).then((each) => parentPort?.postMessage(each))
})
