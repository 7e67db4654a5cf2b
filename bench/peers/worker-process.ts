/** A worker beside the measuring process: tells each start of a handler, and counts the statements it sends. */
import pg from 'pg'
import { contenderOf } from './contender-by-name.ts'
import type { Assignment } from './measurements.ts'

const assignment = JSON.parse(process.argv[2] ?? '') as Assignment
const tellMs = 2

let statementCount = 0
const { query } = pg.Client.prototype
// Everyone here uses this copy of pg, and every statement goes through its clients.
pg.Client.prototype.query = function (this: pg.Client, ...call: unknown[]): unknown {
  statementCount += 1
  return (query as (...call: unknown[]) => unknown).apply(this, call)
} as typeof query

const isLatency = assignment.measurement === 'latency'
let ranCount = 0
setInterval(() => {
  if (ranCount === 0) return
  process.send?.({ kind: 'ran', count: ranCount })
  ranCount = 0
}, tellMs)

const contender = await contenderOf(assignment.contender, assignment)
await contender.open()

async function answer(kind: string): Promise<void> {
  if (kind === 'statements') process.send?.({ kind, count: statementCount })
  if (kind === 'work') {
    await contender.work((count) => {
      if (isLatency) process.send?.({ kind: 'started', at: String(process.hrtime.bigint()) })
      else ranCount += count
    })
    process.send?.({ kind: 'working' })
  }
  if (kind === 'end') {
    await contender.rest()
    await contender.close()
    process.exit(0)
  }
}

process.on('message', (message: { readonly kind: string }) => void answer(message.kind))
process.send?.({ kind: 'ready' })
