/** Reads for people on two connections of their own, so that a slow one takes no place of a worker's. */
import type { Runtime } from '../../core/runtime.ts'
import type { InspectorReader, ReaderOptions } from '../../core/inspector.ts'
import type { ConnectionSettings } from './connection.ts'
import { PostgresInspector } from './inspector.ts'
import { Lane } from './lane.ts'
import type { SchemaName } from './schema-name.ts'
import { Transactions } from './transactions.ts'

const connectionCount = 2

interface ReaderParts {
  readonly settings: ConnectionSettings
  readonly schema: SchemaName
  readonly runtime: Runtime
}

/** `ready` is the storage's own: nothing is read before it has looked at the tables. */
export function openReader(
  { settings, schema, runtime }: ReaderParts,
  { deadlineMs }: ReaderOptions,
  ready: () => Promise<void>,
): InspectorReader {
  const own = { ...settings, statementDeadlineMs: Math.min(deadlineMs, settings.statementDeadlineMs) }
  const lane = new Lane(own, 'reads', connectionCount)
  const transactions = new Transactions({ runtime, settings: own, schema, onCommit: () => undefined })
  const reads = new PostgresInspector(async (call, unit) => {
    await ready()
    return transactions.run(call, lane, unit)
  })
  return { reads, close: () => lane.close() }
}
