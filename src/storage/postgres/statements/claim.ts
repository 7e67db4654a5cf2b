/** The claim of a key that the worker computed: it is the key on the hot row, and the unique index allows one. */
import { sameFingerprint } from '../../../core/canonical-json.ts'
import type { ClaimRequest, ClaimVerdict } from '../../../core/storage.ts'
import { bisected } from '../batches.ts'
import { missingVerdict, type Unit } from '../transactions.ts'
import { isUuid } from './uuid.ts'

const incoming = `json_to_recordset($1::text::json)
  AS r(n integer, id uuid, token bigint, key text, key_prefix text, key_scope text, fingerprint text)`

// Sorted by key, so that two batches wait for each other in one direction only; of the same key one row, the first.
const writeKeys = `
  WITH i AS MATERIALIZED (SELECT DISTINCT ON (r.key) r.*, decode(r.key, 'hex') AS key_hash FROM ${incoming}
    ORDER BY r.key, r.n),
  l AS MATERIALIZED (SELECT i.*, o.place FROM i CROSS JOIN LATERAL
    (SELECT h.ctid AS place FROM chokaq.jobs_hot h WHERE h.id = i.id AND h.token = i.token AND h.state = 'fetched'
      AND h.key_hash IS NULL FOR UPDATE) o
    WHERE NOT EXISTS (SELECT FROM chokaq.jobs_hot k WHERE k.key_hash = i.key_hash OFFSET 0))
  UPDATE chokaq.jobs_hot h SET key_hash = i.key_hash, key_prefix = i.key_prefix, key_scope = i.key_scope,
    fingerprint = i.fingerprint, key_computed = true
  FROM l i WHERE h.ctid = i.place AND h.id = i.id`

const selectReasons = `
  SELECT r.n, h.id IS NOT NULL AS is_owned, h.key_hash IS NOT NULL AS is_keyed, o.id::text AS holder_id,
    o.fingerprint AS holder_fingerprint
  FROM ${incoming}
  LEFT JOIN LATERAL (SELECT * FROM chokaq.jobs_hot j WHERE j.id = r.id AND j.token = r.token AND j.state = 'fetched' OFFSET 0) h ON true
  LEFT JOIN LATERAL (SELECT * FROM chokaq.jobs_hot j WHERE j.key_hash = decode(r.key, 'hex') OFFSET 0) o ON true`

interface ReasonRow {
  readonly n: number
  readonly is_owned: number
  readonly is_keyed: number
  readonly holder_id: string | null
  readonly holder_fingerprint: string | null
}

const maxRounds = 10

type Run = <T>(unit: Unit<T>) => Promise<T>

/**
 * claim: fetched -> fetched, with the key its worker computed
 * Precondition: lease; no other hot row has the key.
 * Returns claimed, held (the row keeps no key) or lost. Repeating it after a lost reply is harmless.
 * Who: the owner, for a keyed row that was enqueued without its key. Each round commits by itself: start must look at
 * the marker in a statement that began after the claim was committed.
 */
export async function claim(run: Run, requests: readonly ClaimRequest[]): Promise<readonly ClaimVerdict[]> {
  const verdicts: (ClaimVerdict | undefined)[] = requests.map(({ lease }) =>
    isUuid(lease.jobId) ? undefined : { kind: 'lost' },
  )
  for (let round = 0; round < maxRounds; round += 1) {
    const open = requests.flatMap((request, n) => (verdicts[n] === undefined ? [{ request, n }] : []))
    if (open.length === 0) break
    const asked = open.map(({ request }) => request)
    const errors = await bisected(
      asked,
      (rows) => writeBatch(run, rows),
      (_, error) => error,
    )
    const reasons = await run({
      isOneStatement: true,
      isRepeatable: true,
      work: ({ session }) => session.all<ReasonRow>(selectReasons, ...valuesOf(asked)),
    })
    for (const row of reasons) {
      const at = open[row.n]
      if (at !== undefined) verdicts[at.n] = verdictOf(at.request, row)
    }
    // A key that somebody's open transaction holds: nothing to answer yet. The others stand, and are told so again.
    const busy = errors.find((error, at) => error !== undefined && verdicts[open[at]?.n ?? -1] === undefined)
    if (busy !== undefined && round > 0) throw busy
  }
  return verdicts.map((verdict) => {
    if (verdict === undefined) throw missingVerdict('a claim')
    return verdict
  })
}

/** No errors: the rows that got no key are asked about afterwards. */
async function writeBatch(run: Run, rows: readonly ClaimRequest[]): Promise<readonly (Error | undefined)[]> {
  await run({
    isOneStatement: true,
    isRepeatable: true,
    committed: 'claim-committed',
    work: ({ session }) => session.all(writeKeys, ...valuesOf(rows)),
  })
  return rows.map(() => undefined)
}

/** Undefined where the holder left in between. */
function verdictOf({ lease, fingerprint }: ClaimRequest, row: ReasonRow): ClaimVerdict | undefined {
  if (row.is_owned === 0) return { kind: 'lost' }
  // Its own, or one that stood there before: a stored key wins over a recomputed one.
  if (row.is_keyed === 1) return { kind: 'claimed' }
  if (row.holder_id === null || row.holder_id === lease.jobId) return undefined
  const isSame = sameFingerprint(fingerprint, row.holder_fingerprint) !== 'different'
  return { kind: 'held', jobId: row.holder_id, sameFingerprint: isSame }
}

function valuesOf(requests: readonly ClaimRequest[]): readonly unknown[] {
  const rows = requests.map(({ lease, key, fingerprint }, n) => ({
    n,
    id: lease.jobId,
    token: lease.token,
    key: key.hash,
    key_prefix: key.prefix,
    key_scope: key.scope,
    fingerprint,
  }))
  return [JSON.stringify(rows)]
}
