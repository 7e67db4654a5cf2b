/** A dead row that comes back to hot, by an operator's resurrect or decision. */
import { jobColumns } from '../../row-mapping.ts'

/** What a resurrected row starts anew; everything else comes along, the attempt number and the history above all. */
const anew: Readonly<Record<string, string>> = {
  run_at: 'chokaq.now_ms()',
  token: `nextval('chokaq.lease_token')`,
  generation: '$2::integer',
  payload: 'coalesce($3::json, payload)',
  key_hash: `coalesce(decode($4, 'hex'), key_hash)`,
  key_prefix: 'coalesce($5::text, key_prefix)',
  key_scope: 'coalesce($6::text, key_scope)',
  key_computed: 'key_computed AND $4 IS NULL',
  fingerprint: 'coalesce($7::text, fingerprint)',
  worker_id: 'NULL',
  failure_count: '0',
  crash_count: '0',
  fetch_crash_count: '0',
  revision: 'revision + 1',
  fetched_at: 'NULL',
  started_at: 'NULL',
  first_started_at: 'NULL',
  cancel_requested_at: 'NULL',
}
// The key is claimed by the insert: where another job took it since it was looked for, nothing comes back.
/** $1 id, $2 generation, $3 payload, $4 to $6 key, $7 fingerprint; null keeps what is there. */
export const resurrectRow = `INSERT INTO chokaq.jobs_hot (${jobColumns.join(', ')}, state)
  SELECT ${jobColumns.map((column) => anew[column] ?? column).join(', ')}, 'pending' FROM chokaq.jobs_dlq WHERE id = $1
  ON CONFLICT DO NOTHING RETURNING 1`
