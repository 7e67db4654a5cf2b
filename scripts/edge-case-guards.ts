// The guards of edge cases E1 to E55 that scripts/guards.ts and scripts/effect-guards.ts do not hold already:
// docs/decisions/edge-cases.md says which test holds which case.

import { guard, type Guard } from './guard.ts'

const conformance = 'test/conformance/sqlite-memory.test.ts'
const doubt = 'test/effects/doubt.test.ts'
const edges = 'test/effects/edge-cases.test.ts'
const reviews = 'test/effects/reviews.test.ts'
const keyCanon = 'src/core/key-canon.test.ts'
const canonicalJson = 'src/core/canonical-json.test.ts'
const statements = 'src/storage/sqlite/statements'

const keys: readonly Guard[] = [
  guard(
    'E2 E52',
    'a job in hot holds its key for as long as it is there',
    `${statements}/enqueue.ts`,
    'const holder = session.get<Holder>(selectHolder, job.key?.hash ?? null)',
    'const holder = undefined as Holder | undefined',
    {
      'test/holes/keys.test.ts': ['H7 a handler that runs for hours'],
      'test/http/servers.test.ts': ['stores a signed delivery once'],
    },
  ),
  guard(
    'E15',
    'a fingerprint is made of the canonical form',
    'src/core/canonical-json.ts',
    `    .sort((a, b) => compareCodeUnits(a.sort, b.sort) || compareCodeUnits(a.key, b.key))\n`,
    '',
    { [canonicalJson]: ['E15 what a trip through JSON', 'is the same for every order of keys'] },
  ),
  guard(
    'E16',
    'the order of keys is total',
    'src/core/canonical-json.ts',
    'return a < b ? -1 : 1',
    `return a.localeCompare(b, 'en', { sensitivity: 'base' })`,
    { [canonicalJson]: ['E16 keys that some orders call equal'] },
  ),
  guard(
    'E18',
    'a key function is asked twice',
    'src/core/preparation.ts',
    'if (call() !== key) {',
    'if (call() === undefined) {',
    { [edges]: ['E18 a key with random or counted data'] },
  ),
  guard(
    'E18',
    'a stored key wins over a recomputed one',
    'src/engine/fetch/gate.ts',
    'if (!policy.keyed || job.key !== undefined) {',
    'if (!policy.keyed) {',
    { [edges]: ['E18 a key that changes between attempts'] },
  ),
  guard(
    'E19',
    'the tenant is part of the key',
    'src/core/key-canon.ts',
    'chokaq-key-v1|${lengthPrefixed(parts.tenant)}|',
    'chokaq-key-v1|',
    { 'src/core/preparation.test.ts': ['is another one for another tenant'] },
  ),
  guard(
    'E20 E55',
    'the whole key is hashed, and only its beginning is shown',
    'src/core/key-canon.ts',
    '|${lengthPrefixed(parts.key)}`',
    '|${lengthPrefixed(keyPrefix(parts.key))}`',
    { [keyCanon]: ['E20 tells long keys'] },
  ),
  guard(
    'E36',
    'what decides a claim stands in a transaction that writes',
    'src/storage/sqlite/write-transaction.ts',
    `const attempt = (): T => this.#once('BEGIN IMMEDIATE', unit, isCareful)`,
    `const attempt = (): T => this.#once('BEGIN', unit, isCareful)`,
    { [edges]: ['E36 on SQLite'] },
  ),
  guard(
    'E40',
    'a refused row takes back its own changes only',
    'src/storage/sqlite/write-transaction.ts',
    'if (!this.#isCareful) return work(counters)',
    'if (counters.rows !== undefined) return work(counters)',
    { [conformance]: ['a bad row costs its neighbours nothing'] },
  ),
  guard(
    'E43',
    'what is taken is found by its state',
    `${statements}/fetch.ts`,
    `WHERE state = 'pending' AND queue = ? AND type = ? ORDER BY`,
    `WHERE state = 'pending' AND queue = ? AND type = ?
    AND id > coalesce((SELECT max(id) FROM chokaq_jobs_archive), '') ORDER BY`,
    { [edges]: ['E43 a message under a smaller id'] },
  ),
  guard(
    'E51',
    'a child has the same id on every attempt',
    'src/engine/process/handler-ctx.ts',
    `const lineage = { parentId: this.jobId, id: this.#childId(job, item ?? '') }`,
    'const lineage = { parentId: this.jobId }',
    { 'test/engine/user-transaction.test.ts': ['commits with the rows, and the next attempt'] },
  ),
  guard(
    'E52',
    'a delivery is acknowledged when it is stored',
    'src/http/webhook.ts',
    'const { id, outcome } = await options.chokaq.enqueue(options.job, payload)',
    `const { id, outcome } = { id: 'soon', outcome: 'enqueued' }
    void options.chokaq.enqueue(options.job, payload).catch(() => undefined)`,
    { 'test/http/servers.test.ts': ['stores a signed delivery once'] },
  ),
]

const endings: readonly Guard[] = [
  guard(
    'E6',
    'a cancel looks for doubts',
    `${statements}/settle-leaving.ts`,
    'if (!hold && !holdsKey(tx.session, row.key_hash, row.generation)) {',
    'if (!hold) {',
    { [doubt]: ['E6 a cancel that comes while an effect is in doubt'] },
  ),
  guard(
    'E35',
    'the engine never runs a transaction again by itself',
    'src/storage/sqlite/write-transaction.ts',
    `      return this.#once('BEGIN IMMEDIATE', unit, true)
    } catch (error) {
      throw troubleOf(error) === 'unknown'`,
    `      return this.#once('BEGIN IMMEDIATE', unit, true)
    } catch (error) {
      if (troubleOf(error) === 'unknown') return this.#once('BEGIN IMMEDIATE', unit, true)
      throw troubleOf(error) === 'unknown'`,
    { [edges]: ['E35 a transaction that the database takes back'] },
  ),
  guard(
    'E35',
    'a transaction that committed is not run again',
    `${statements}/checkpoint.ts`,
    `  if (known !== undefined) return { kind: 'replayed', result: known.result }\n`,
    '',
    { [edges]: ['E35 a transaction that the database takes back'] },
  ),
  guard(
    'E37',
    'liveness is measured by a monotonic clock',
    'src/engine/process/heart.ts',
    `  #sinceBeatMs(): number {
    return this.#parts.runtime.clock.monotonicMs() - this.#confirmedMs`,
    `  #sinceBeatMs(): number {
    return this.#parts.runtime.clock.nowMs() - this.#confirmedMs`,
    { 'test/engine/liveness.test.ts': ['a wall clock that jumps by an hour'] },
  ),
  guard(
    'E38',
    'every connection flushes every commit',
    'src/storage/sqlite/connection.ts',
    '  db.exec(`PRAGMA synchronous = ${synchronousName(wanted)}`)\n',
    '',
    { 'src/storage/sqlite/connection.test.ts': ['sets synchronous again on a file that is reopened'] },
  ),
  guard(
    'E41',
    'a start is offered until it is answered',
    'src/engine/fetch/gate.ts',
    "run: (r) => call('start', () => driver.start(r))",
    'run: (r) => driver.start(r)',
    { 'test/holes/finalisation.test.ts': ['H23 a storage that is away before a handler runs'] },
  ),
  guard(
    'E45',
    'retries are bounded',
    'src/core/outcome.ts',
    'if (failures >= facts.retry.attempts)',
    'if (failures >= 1_000)',
    { [edges]: ['E45 a message that cannot be sent'] },
  ),
  guard(
    'E46',
    'the record of a key stays while its marker does',
    `${statements}/ledger.ts`,
    '    AND NOT EXISTS (SELECT 1 FROM chokaq_idempotency_markers m WHERE m.key_hash = e.key_ref)\n',
    '',
    { [conformance]: ['rows go when nothing has their key'] },
  ),
  guard(
    'E47',
    'a new operation has the next generation',
    `${statements}/operate.ts`,
    `const generation = mode === 'continue' ? dead.generation :`,
    'const generation = mode.length > 0 ? dead.generation :',
    { [reviews]: ['E47 a dead job is continued'], [conformance]: ['E47 a new operation has a record of its own'] },
  ),
  guard(
    'E47',
    'a new operation of a job in doubt needs to know that nothing happened',
    `${statements}/operate.ts`,
    'return absenceRefusal(calls, dead.in_doubt === 1 || doubt !== undefined, absence)',
    'return absence === undefined ? undefined : absenceRefusal(calls, false, absence)',
    { [conformance]: ['a job in doubt is continued only by a decision'] },
  ),
  guard(
    'E49',
    'who comes second is told who was first',
    `${statements}/resolve.ts`,
    `if (row === undefined || (row.in_doubt === 0 && row.reason !== 'CompleteConflict')) return decidedBefore(tx, request)`,
    `if (row === undefined) return { kind: 'not-found' }`,
    { [conformance]: ['E49 of two operators at once'], [reviews]: ['E49 of two operators one decides'] },
  ),
  guard(
    'E49',
    'a decision is on what the operator saw',
    `${statements}/resolve.ts`,
    `  if (row.revision !== request.revision) return { kind: 'changed', revision: row.revision }\n`,
    '',
    { [reviews]: ['a decision on what has changed since'] },
  ),
  guard(
    'E50',
    'silence is no death before its time',
    'src/engine/sweep/death-watch.ts',
    'seen.readCount >= minReadCount && nowMs - seen.sinceMs >= this.#deadAfterMs',
    'seen.readCount >= minReadCount',
    { 'test/docs/promises.test.ts': ['the job of a worker that falls silent is taken back'] },
  ),
  guard(
    'E53',
    'what was undone is marked so',
    `${statements}/settle-complete.ts`,
    `const state = action.compensated === true ? 'compensated' : 'completed'`,
    `const state = 'completed' as const`,
    { [reviews]: ['E53 a late duplicate after compensation'] },
  ),
  guard(
    'E54',
    'an undoing that has not ended holds the key',
    `${statements}/ledger.ts`,
    'return hasDoubt(session, keyHash, generation) || session.get(selectCompensate, keyHash, generation) !== undefined',
    'return hasDoubt(session, keyHash, generation)',
    { [conformance]: ['E54 an undoing that does not come to its end'] },
  ),
  guard(
    'E54',
    'an undoing is an effect with a key of its own',
    'src/engine/process/effect-scope.ts',
    `          row.item,
          'compensation',`,
    `          row.item + String(this.#facts.attempt),
          'compensation',`,
    { [reviews]: ['E54 it is resumed, and undoes once'] },
  ),
  guard(
    'E55',
    'what is not to be kept is not kept',
    `${statements}/settle-complete.ts`,
    `if (action.keep.kind === 'stub') leaveStub(`,
    `if (action.result === 'kept') leaveStub(`,
    { 'test/engine/children.test.ts': ['drops payload and result'] },
  ),
]

export const edgeCaseGuards: readonly Guard[] = [...keys, ...endings]
