/**
 * ctx.transaction: the handler's statements and a checkpoint commit together, on a connection that is the handler's while
 * it lasts. The connection is as the user's server sets it (its search path, its timeouts): the pinned settings are for
 * the storage's own statements.
 *
 * The lease is looked at twice: before the work, to spare it, and under lock just before the commit, which decides. So
 * the work holds no lock of ours, however long it takes. A commit whose reply was lost is read back.
 */
import { ChokaQError } from '../../core/errors.ts'
import type { Runtime } from '../../core/runtime.ts'
import type { CheckpointRequest, CheckpointVerdict } from '../../core/storage.ts'
import type { Connection } from './connection.ts'
import type { Lane } from './lane.ts'
import { translated, troubleOf } from './postgres-errors.ts'
import type { SchemaName } from './schema-name.ts'
import { Session } from './session.ts'
import { checkpointState, isCheckpointLeft, leaveCheckpoint } from './statements/checkpoint.ts'

export interface HandlerTransactionOptions {
  readonly runtime: Runtime
  readonly lane: Lane
  readonly schema: SchemaName
  readonly location: string
  /** Runs read-only work in a transaction of the storage's own. */
  readonly readBack: <T>(work: (session: Session) => Promise<T>) => Promise<T>
}

type Work = (tx: unknown) => Promise<string | null>

export async function runHandlerTransaction(
  options: HandlerTransactionOptions,
  request: CheckpointRequest,
  work: Work,
): Promise<CheckpointVerdict> {
  const { lane, runtime, location } = options
  let isCommitting = false
  let thrown: { readonly error: unknown } | undefined
  let result: string | null = null
  try {
    return await lane.use('ctx.transaction', async (connection) => {
      const session = new Session(connection, options.schema)
      const state = await checkpointState(session, request)
      if (state.kind !== 'free') return state
      await connection.query('BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE')
      try {
        try {
          result = await work(connection.handle)
        } catch (error) {
          thrown = { error }
          throw error
        }
        refuseEnded(connection)
        if (!(await leaveCheckpoint(session, request, result))) {
          await rollback(connection)
          return { kind: 'lost' }
        }
        runtime.faults.reach('ledger-before-commit')
        isCommitting = true
        await connection.query('COMMIT')
      } catch (error) {
        await rollback(connection)
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
    throw translated(error, location, 0)
  }
}

/** A handler that commits by itself has parted its rows from the checkpoint. */
function refuseEnded(connection: Connection): void {
  if (connection.transactionStatus !== 'I') return
  throw new ChokaQError('CHOKAQ_NOT_IN_TRANSACTION', { call: 'ctx.transaction' })
}

async function rollback(connection: Connection): Promise<void> {
  if (connection.isBroken) return
  await connection.query('ROLLBACK').catch(() => connection.markBroken())
}
