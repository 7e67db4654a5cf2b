// Every guard that keeps a promise, as the exact text that does it. scripts/remove-guards.ts takes each out of a copy of
// the tree and expects the named tests to fail: a guard that can be removed unnoticed is not held by anything.
// test/holes/guards.test.ts keeps the texts up to date.

import { edgeCaseGuards } from './edge-case-guards.ts'
import { effectGuards } from './effect-guards.ts'
import { guard, type Guard } from './guard.ts'

const conformance = 'test/conformance/sqlite-memory.test.ts'
const keys = 'test/holes/keys.test.ts'
const finalisation = 'test/holes/finalisation.test.ts'
const suspects = 'test/holes/suspects.test.ts'
const liveness = 'test/engine/liveness.test.ts'
const statements = 'src/storage/sqlite/statements'

/** A token that has risen since still passes. */
const stale = (text: string): string => text.replace('token = ?', 'token >= ?')

function tokenGuard(what: string, file: string, text: string, title: string): Guard {
  return guard('H8 I6 E9', `the token in ${what}`, `${statements}/${file}`, text, stale(text), {
    [conformance]: [title],
  })
}

const ownership: readonly Guard[] = [
  tokenGuard(
    'complete',
    'settle-complete.ts',
    `WHERE id = ? AND token = ? AND state = 'processing'`,
    'H8 a stale owner cannot complete',
  ),
  tokenGuard(
    'retry, bury, skip, cancel, release and defer',
    'settle.ts',
    `WHERE id = ? AND token = ? AND state IN ('fetched', 'processing')`,
    'H8 a stale owner cannot retry',
  ),
  tokenGuard(
    'start',
    'start.ts',
    `WHERE id = ? AND token = ? AND state IN ('fetched', 'processing')`,
    'H8 a stale owner cannot start',
  ),
  guard(
    'H8 I6',
    'the token in claim',
    `${statements}/fetch.ts`,
    `WHERE id = ? AND token = ? AND state = 'fetched'`,
    `WHERE id = ? AND token >= ? AND state = 'fetched'`,
    { [keys]: ['H8 a stale owner cannot claim for the one'] },
  ),
  guard(
    'H8 I6',
    'disown raises the token',
    `${statements}/process.ts`,
    'session.run(giveBackDisowned, token++, rowid)',
    'session.run(giveBackDisowned, (token++, lost.find((each) => each.rowid === rowid)?.token ?? 0), rowid)',
    { [conformance]: ['H8 the owner of a disowned row is stale'] },
  ),
  guard(
    'H9 K9 E7',
    'a repeated settle is read back',
    `${statements}/settle.ts`,
    'if (archived !== undefined) return settled(archived.outcome)',
    '',
    {
      [finalisation]: ['H9 the reply to a completion is lost'],
      [conformance]: ['H9 a completion whose reply was lost'],
    },
  ),
  guard(
    'I5',
    'the fence comes before the dead time',
    'src/core/windows.ts',
    'holds: (w) => w.fenceMs <= latestFenceMs(w),',
    'holds: () => true,',
    { 'src/core/windows.test.ts': ['fence-before-dead'] },
  ),
  guard(
    'I24',
    'a worker without confirmed beats fences itself',
    'src/engine/process/heart.ts',
    `if (this.#sinceBeatMs() >= config.fenceAfterMs) this.#fence('beats-failed')`,
    '',
    { [liveness]: ['fences itself after 20 s'] },
  ),
  guard(
    'H32',
    'success is told by what the storage says',
    'src/engine/settle/settler.ts',
    `    if (verdict.kind === 'lost') {\n`,
    `    if (verdict.kind === 'lost') events.emit({ name: 'job.completed', ...of, durationMs: 0, repeated: false })
    if (verdict.kind === 'lost') {\n`,
    { [finalisation]: ['H32 a completion counts by what the storage says'] },
  ),
]

const claims: readonly Guard[] = [
  guard(
    'R3 H1 E39',
    'start looks at the marker',
    `${statements}/start.ts`,
    'const duplicate = duplicateOf(tx, row, lease.jobId)',
    'const duplicate = undefined as ReturnType<typeof duplicateOf>',
    {
      [keys]: ['H28 every outcome of a claim is counted'],
      [conformance]: ['R3 a claim does not look at the marker: start does'],
    },
  ),
  guard(
    'R3',
    'a fast start looks at the marker',
    `${statements}/fetch.ts`,
    'return findLiveMarker(session, row.key_hash, nowMs) === undefined',
    'return true',
    { [conformance]: ['a live marker'] },
  ),
  guard(
    'H1 E1',
    'the own marker in doubt is no duplicate',
    `${statements}/start.ts`,
    `if (marker === undefined || (marker.job_id === jobId && marker.state === 'in_doubt')) return undefined`,
    'if (marker === undefined) return undefined',
    { [conformance]: ['H1 the own marker in doubt'] },
  ),
  guard(
    'R3',
    'the claim is committed before the start',
    'src/engine/fetch/gate.ts',
    'if (!policy.keyed || job.key !== undefined) {',
    'if (job.type.length > 0) {',
    { [keys]: ['H10 a skipped duplicate', 'H18 an empty key fails closed'] },
  ),
  guard(
    'R3',
    'nothing keyed starts without its key',
    `${statements}/start.ts`,
    `if (row.key_hash === null && policy.keyed) return { kind: 'lost' }`,
    '',
    { [keys]: ['R3 a keyed job that nobody has claimed'] },
  ),
  guard(
    'R1 H14',
    'a claim asks who holds the key',
    `${statements}/fetch.ts`,
    '  if (holder !== undefined) {\n    const sameFingerprintAsHolder',
    '  if (holder !== undefined && holder.id.length === 0) {\n    const sameFingerprintAsHolder',
    { [keys]: ['H10 a skipped duplicate', 'H14 middleware stands inside the claim'] },
  ),
  guard(
    'R2 H5 E8',
    'a completion never replaces the live marker of another job',
    `${statements}/settle-complete.ts`,
    'if (live !== undefined && live.job_id !== jobId) return conflict(',
    `if (live !== undefined && live.job_id === '') return conflict(`,
    { [conformance]: ['H5 R2 a live marker of another job'] },
  ),
  guard(
    'H9 E51',
    'marker and archive are one transaction',
    `${statements}/settle-complete.ts`,
    '  const deadChildren = action.children.flatMap((child) => enqueueChild(tx, child, counters))\n',
    `  session.run('COMMIT')\n  session.run('BEGIN IMMEDIATE')
  const deadChildren = action.children.flatMap((child) => enqueueChild(tx, child, counters))\n`,
    { [conformance]: ['H9 a completion that died before its commit'] },
  ),
  guard(
    'K20',
    'children are stored with the completion',
    `${statements}/settle-complete.ts`,
    '  const deadChildren = action.children.flatMap((child) => enqueueChild(tx, child, counters))\n',
    '  const deadChildren: readonly DeadChild[] = []\n',
    { [conformance]: ['children commit with the completion'] },
  ),
  guard(
    'H18 E17',
    'an empty key is refused',
    'src/core/preparation.ts',
    `if (problem !== undefined) throw new ChokaQError('CHOKAQ_EMPTY_KEY'`,
    `if (problem === 'never') throw new ChokaQError('CHOKAQ_EMPTY_KEY'`,
    { [keys]: ['H18 an empty key fails closed'] },
  ),
  guard(
    'H19 E14',
    'enqueue compares the fingerprint with that of the holder',
    `${statements}/enqueue.ts`,
    `if (sameFingerprint(job.fingerprint, holder.fingerprint) === 'different') {`,
    'if (job.id.length === 0) {',
    { [keys]: ['H19 the same key with other content'] },
  ),
  guard(
    'H19',
    'the worker compares the fingerprint with that of the holder',
    'src/engine/fetch/gate.ts',
    `      case 'held':\n        if (!verdict.sameFingerprint)`,
    `      case 'held':\n        if (job.type.length === 0)`,
    { [keys]: ['H19 the same key with other content'] },
  ),
  guard('H16 E19', 'the scope is part of the key', 'src/core/key-canon.ts', '|${lengthPrefixed(parts.scope)}|', '|', {
    [keys]: ['H16 the same key of two types'],
  }),
  guard(
    'H17',
    'keys have one form',
    'src/core/key-canon.ts',
    `const text = part.normalize('NFC')`,
    'const text = part',
    {
      [keys]: ['H17 producer and worker compute one key'],
    },
  ),
  guard(
    'H20',
    'a duplicate is given the stored result',
    `${statements}/enqueue.ts`,
    `return { kind: 'completed', jobId, result: live.result }`,
    `return { kind: 'completed', jobId, result: null }`,
    { [keys]: ['H20 a duplicate of a finished job'] },
  ),
  guard(
    'H10 E10',
    'a skip is not counted as success',
    `${statements}/settle-leaving.ts`,
    `counters.add('jobs.skipped', row)`,
    `counters.add('jobs.completed', row)`,
    { [keys]: ['H10 a skipped duplicate'] },
  ),
  guard(
    'H11 E10 E11',
    'a duplicate of a running job may wait',
    'src/engine/fetch/gate.ts',
    `if (unsettled && handler.onDuplicate === 'defer')`,
    'if (unsettled && handler.retry.attempts === 0)',
    { [keys]: ['H11 a deferred duplicate'] },
  ),
]

const endings: readonly Guard[] = [
  guard(
    'H2',
    'a shutdown settles what it aborted',
    'src/core/outcome.ts',
    `return { kind: 'retry', delayMs: 0, failure, charge: 'nothing', reason: 'shutdown' }`,
    'return undefined',
    { [finalisation]: ['H2 a job that was aborted by a shutdown'] },
  ),
  guard(
    'H4 E6',
    'only a lost lease takes the result from a handler that returned',
    'src/engine/process/attempt.ts',
    `if (this.#aborted?.by === 'lease-lost') return`,
    'if (this.#aborted !== undefined) return',
    { [finalisation]: ['H4 a handler that returns after its timeout'] },
  ),
  guard(
    'H3 H4 E42',
    'an outcome is offered until it is stored',
    'src/engine/persist.ts',
    'if (!isTransient(error) || options.stop()) throw error',
    'throw error',
    {
      [finalisation]: ['H3 a storage that is away while a handler fails', 'H4 a completion outlives a storage'],
    },
  ),
  guard(
    'H6',
    'windows are checked before the first job',
    'src/engine/worker.ts',
    'if (refusals.length > 0) {',
    'if (refusals.length > 99) {',
    {
      [finalisation]: ['H6 windows that do not fit'],
    },
  ),
  guard(
    'H30',
    'a crash under review leaves doubt',
    `${statements}/sweep.ts`,
    'const hold = isInterruptedReview(row)',
    `const hold = isInterruptedReview(row) && row.id === ''`,
    { [conformance]: ['H30 a started job under review'], [liveness]: ['a review handler is not run again'] },
  ),
  guard(
    'H22',
    'a throw under review leaves doubt',
    'src/core/outcome.ts',
    `  if (facts.whenInterrupted === 'review') return { kind: 'bury', reason: 'Interrupted', failure, hold: true }\n`,
    '',
    { [finalisation]: ['H22 H30 a review handler that throws'] },
  ),
  guard(
    'H30',
    'doubt is not continued',
    `${statements}/operate.ts`,
    `  if (dead.in_doubt === 1 || isOwnDoubt) return { kind: 'in-doubt' }\n`,
    '',
    { [finalisation]: ['H22 H30 a review handler that throws'] },
  ),
  guard(
    'H30',
    'doubt is not purged',
    `${statements}/operate.ts`,
    'WHERE in_doubt = 0 AND ${sql} ${named}',
    'WHERE ${sql} ${named}',
    { [conformance]: ['H30 purge never takes a job in doubt'] },
  ),
  guard(
    'H24',
    'a job that is brought back keeps its key',
    `${statements}/operate.ts`,
    `key_hash: 'coalesce(?, key_hash)',\n  key_prefix: 'coalesce(?, key_prefix)',\n  key_scope: 'coalesce(?, key_scope)',`,
    `key_hash: '?',\n  key_prefix: '?',\n  key_scope: '?',\n  key_computed: '? IS NULL AND 0',`,
    { [keys]: ['H24 a job that was brought back'] },
  ),
  guard(
    'H25 E47',
    'an edit that changes the key is a new operation',
    `${statements}/operate.ts`,
    `  if (mode === 'continue' && keyHash !== dead.key_hash) return { kind: 'key-changed' }\n`,
    '',
    { [keys]: ['H25 an edited payload is a decision'] },
  ),
  guard(
    'I9',
    'the crash budget',
    `${statements}/sweep.ts`,
    'row.crash_count + addCrashes > (row.crash_budget ?? Infinity) ||',
    '',
    { [conformance]: ['a crash after the gate is charged'], [liveness]: ['a job that kills its worker every time'] },
  ),
  guard(
    'I9',
    'a suspect keeps its place until its outcome is durable',
    'src/engine/worker-incarnation.ts',
    'if (!held.job.suspect || abandoned !== undefined) this.#leaveSlot(held)',
    'this.#leaveSlot(held)',
    { [suspects]: ['I9 the next suspect begins only when'] },
  ),
  guard(
    'I9',
    'a suspect is started before its payload is read',
    'src/engine/fetch/gate.ts',
    `if (job.suspect && job.state === 'fetched' && hasKey) return`,
    `if (job.suspect && job.state === 'fetched' && hasKey && job.attempt < 0) return`,
    { [suspects]: ['I9 a suspect is started before its schema reads it'] },
  ),
  guard(
    'I9',
    'one suspect at a time',
    'src/engine/process/slots.ts',
    'return this.free > 0 && (!job.suspect || this.#suspects === 0)',
    'return this.free > 0',
    { [suspects]: ['I9 the next suspect begins only when'] },
  ),
  guard(
    'I23',
    'a pause is looked at again at the start',
    `${statements}/start.ts`,
    `  if (session.get(selectPaused, row.queue) !== undefined) return { kind: 'paused' }\n`,
    '',
    { [conformance]: ['a queue paused since the fetch stops the start'] },
  ),
  guard(
    'I23',
    'a paused queue is not fetched from',
    `${statements}/fetch.ts`,
    '  if (limits.paused === 1) return 0\n',
    '',
    {
      [conformance]: ['a paused queue gives nothing'],
    },
  ),
  guard(
    'I15',
    'the limit of a queue',
    `${statements}/fetch.ts`,
    'return Math.min(limit, limits.max_concurrency - owned)',
    'return limit',
    { [conformance]: ['a limit counts what is fetched and what runs'] },
  ),
  guard(
    'I8',
    'the retry lifetime',
    `${statements}/start.ts`,
    `  if (nowMs - firstStartedAtMs > policy.retryLifetimeMs) return { kind: 'expired' }\n`,
    '',
    { [conformance]: ['a retry lifetime that is over stops the start'] },
  ),
]

export const guards: readonly Guard[] = [...ownership, ...claims, ...endings, ...effectGuards, ...edgeCaseGuards]
