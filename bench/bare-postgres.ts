/**
 * The measuring stick for PostgreSQL: two connections that fetch and settle on the same tables and indexes, in batches, with
 * named statements, history and markers, when nothing but the statements runs. No verdicts, no guard of the queue, no
 * counters, no handlers, no promises.
 */
import pg from 'pg'
import { archivedColumns } from './bare-loop.ts'

const connectionCount = 2

interface Taken {
  readonly id: string
  readonly token: string
  readonly payload: unknown
}

/** Starts what it takes, as a fast start does. */
const take = (schema: string, batchCount: number): string => `
  WITH pick AS MATERIALIZED (
    SELECT ctid AS place FROM ${schema}.jobs_hot WHERE state = 'pending' AND queue = 'default' AND type = 'bench.v1'
    ORDER BY priority DESC, run_at, id LIMIT ${batchCount} FOR UPDATE SKIP LOCKED)
  UPDATE ${schema}.jobs_hot h SET state = 'processing', worker_id = 'bare', token = nextval('${schema}.lease_token'),
    fetched_at = $1, started_at = $1, first_started_at = $1, attempt = attempt + 1, fast_started = true,
    when_interrupted = 'resume'
  FROM pick WHERE h.ctid = pick.place RETURNING h.id, h.token, h.payload`

const settle = (schema: string): string => `
  WITH gone AS (
    DELETE FROM ${schema}.jobs_hot WHERE id = ANY ($1::uuid[]) AND token = ANY ($2::bigint[]) RETURNING *),
  marked AS (
    INSERT INTO ${schema}.idempotency_markers
      (key_hash, state, job_id, generation, token, created_at, expires_at, fingerprint)
    SELECT key_hash, 'completed', id, generation, token, $3::bigint, $3::bigint + 86400000, fingerprint
    FROM gone WHERE key_hash IS NOT NULL)
  INSERT INTO ${schema}.jobs_archive (${archivedColumns}, outcome, finished_at)
  SELECT ${archivedColumns}, 'completed', $3::bigint FROM gone`

/** Until nothing is pending; how many. */
export async function drainBare(url: string, schemaName: string, batchCount: number): Promise<number> {
  const schema = pg.escapeIdentifier(schemaName)
  const loop = async (): Promise<number> => {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    let done = 0
    for (;;) {
      const { rows } = await client.query<Taken>({ name: 'take', text: take(schema, batchCount), values: [Date.now()] })
      if (rows.length === 0) break
      const leases = [rows.map(({ id }) => id), rows.map(({ token }) => token)]
      await client.query({ name: 'settle', text: settle(schema), values: [...leases, Date.now()] })
      done += rows.length
    }
    await client.end()
    return done
  }
  const counts = await Promise.all(Array.from({ length: connectionCount }, loop))
  return counts.reduce((sum, count) => sum + count, 0)
}
