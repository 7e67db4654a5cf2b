/**
 * ctx.transaction: the handler's statements and a checkpoint commit together, on a connection that is the handler's while
 * it lasts. The connection is as the user's server sets it (its search path, its timeouts): the pinned settings are for
 * the storage's own statements.
 *
 * The lease is looked at twice: before the work, to spare it, and under lock just before the commit, which decides. So
 * the work holds no lock of ours, however long it takes. A commit whose reply was lost is read back.
 *
 * Times. The handler's own statements have none but what the user's server and the attempt's timeout set: when the
 * attempt is over, and be it because its worker gave the handler up, the connection is cut, so neither a statement that
 * went into a half-open socket nor a handler that never comes back keeps the lane. What the server holds for a client
 * that is gone ends with its keepalive, which is hours by default, so the transaction asks for half a minute. From the
 * end of the work on the transaction is the storage's: it is about to lock the job's row, and a socket that is half open
 * from there to the commit would keep that row from everyone. So the transaction then bounds itself on the server: how
 * long it waits for a lock, and how long for this side. That ends before this side stops waiting, so whoever reads the
 * commit back finds the row free, or soon free. A statement has no time of its own on the server: constraints that the
 * handler deferred are checked by COMMIT.
 */
import { ChokaQError } from '../../core/errors.ts'
import type { Runtime } from '../../core/runtime.ts'
import type { CheckpointRequest, CheckpointVerdict } from '../../core/storage.ts'
import { clientDeadlineMs, type Connection, type ConnectionSettings } from './connection.ts'
import type { Lane } from './lane.ts'
import { translated, troubleOf } from './postgres-errors.ts'
import type { SchemaName } from './schema-name.ts'
import { type Queryable, Session } from './session.ts'
import { checkpointState, isCheckpointLeft, leaveCheckpoint } from './statements/checkpoint.ts'

export interface HandlerTransactionOptions {
  readonly runtime: Runtime
  readonly lane: Lane
  readonly schema: SchemaName
  readonly settings: ConnectionSettings
  /** Runs read-only work in a transaction of the storage's own. */
  readonly readBack: <T>(work: (session: Session) => Promise<T>) => Promise<T>
}

type Work = (tx: unknown) => Promise<string | null>

export async function runHandlerTransaction(
  options: HandlerTransactionOptions,
  request: CheckpointRequest,
  work: Work,
): Promise<CheckpointVerdict> {
  const { lane, runtime, settings } = options
  let isCommitting = false
  let thrown: { readonly error: unknown } | undefined
  let result: string | null = null
  try {
    return await lane.use('ctx.transaction', async (connection) => {
      const own = ownStatements(connection, settings)
      const session = new Session(own, options.schema)
      const state = await checkpointState(session, request)
      if (state.kind !== 'free') return state
      await own.query(`BEGIN ISOLATION LEVEL READ COMMITTED; ${keepAliveSettings}`)
      try {
        try {
          result = await worked(connection, request, work)
        } catch (error) {
          thrown = { error }
          throw error
        }
        refuseEnded(connection)
        await own.query(checkpointSettings(settings))
        if (!(await leaveCheckpoint(session, request, result))) {
          await rollback(connection, own)
          return { kind: 'lost' }
        }
        runtime.faults.reach('ledger-before-commit')
        isCommitting = true
        await own.query('COMMIT')
      } catch (error) {
        await rollback(connection, own)
        throw error
      }
      runtime.faults.reach('ledger-committed')
      return { kind: 'ran', result }
    })
  } catch (error) {
    // What the handler's own statements met is the handler's to understand.
    if (thrown !== undefined) throw thrown.error
    if (isCommitting && troubleOf(error) === 'connection') {
      if (await options.readBack((session) => isCheckpointLeft(session, request))) return { kind: 'ran', result }
    }
    throw translated(error, settings.target.location, 0)
  }
}

/** The storage's own statements, which this side does not wait for without end. */
function ownStatements(connection: Connection, settings: ConnectionSettings): Queryable {
  const deadlineMs = clientDeadlineMs(settings)
  return { query: (text, values) => connection.query(text, values, deadlineMs) }
}

/** A peer that answers nothing is given up after 10 + 4 * 5 seconds. Without effect on a Unix socket. */
const keepAliveSettings = `SET LOCAL tcp_keepalives_idle = 10; SET LOCAL tcp_keepalives_interval = 5;
  SET LOCAL tcp_keepalives_count = 4`

/** What the handler did, unless its attempt ends first: then its connection is cut, and nobody waits for it any more. */
async function worked(connection: Connection, { lease, over }: CheckpointRequest, work: Work): Promise<string | null> {
  if (over === undefined) return work(connection.handle)
  const revoked = new ChokaQError('CHOKAQ_CTX_REVOKED', { jobId: lease.jobId, call: 'transaction' })
  if (over.aborted) throw revoked
  return new Promise((resolve, reject) => {
    const cut = (): void => {
      void connection.close()
      reject(revoked)
    }
    over.addEventListener('abort', cut)
    void work(connection.handle)
      .then(resolve, reject)
      .finally(() => {
        over.removeEventListener('abort', cut)
      })
  })
}

/** For what follows the handler's work. Its work is worth a longer wait for the row than a statement of the sweep is. */
function checkpointSettings({ statementDeadlineMs }: ConnectionSettings): string {
  return `SET LOCAL lock_timeout = ${statementDeadlineMs};
    SET LOCAL idle_in_transaction_session_timeout = ${statementDeadlineMs}`
}

/** A handler that commits by itself has parted its rows from the checkpoint. */
function refuseEnded(connection: Connection): void {
  if (connection.transactionStatus !== 'I') return
  throw new ChokaQError('CHOKAQ_NOT_IN_TRANSACTION', { call: 'ctx.transaction' })
}

async function rollback(connection: Connection, own: Queryable): Promise<void> {
  if (connection.isBroken) return
  await own.query('ROLLBACK').catch(() => connection.markBroken())
}
