// The guards of effects: what keeps an action from being repeated, and a doubt from being forgotten.

import { guard, type Guard } from './guard.ts'

const conformance = 'test/conformance/sqlite-memory.test.ts'
const statements = 'src/storage/sqlite/statements'
const scope = 'src/engine/process/effect-scope.test.ts'
const doubt = 'test/effects/doubt.test.ts'
const edges = 'test/effects/edge-cases.test.ts'
const caller = 'src/engine/process/effect-caller.ts'

export const effectGuards: readonly Guard[] = [
  guard(
    'H22 H31',
    'nothing is opened beside what is done',
    `${statements}/ledger.ts`,
    `const settled = rows.some((row) => row.state === 'done')`,
    `const settled = rows.some((row) => row.state === 'done' && row.id === 'never')`,
    { [conformance]: ['nothing is opened beside what is done, seen or not'] },
  ),
  guard(
    'E32',
    'a completion looks for doubts',
    `${statements}/settle-complete.ts`,
    'if (action.guard === true && (hasDoubt(session, keyHash, generation)',
    'if (action.guard === true && (hasDoubt(session, null, generation)',
    {
      [conformance]: ['a completion refused over a doubt is recognised'],
      [doubt]: ['E32 an error in doubt that the handler swallows'],
    },
  ),
  guard(
    'H22 H30',
    'a death with an open effect holds the key',
    `${statements}/leave-hot.ts`,
    'const hold = burial.hold || holdsKey(session, row.key_hash, row.generation)',
    'const hold = burial.hold',
    { [conformance]: ['the crash budget ends with the doubt'] },
  ),
  guard(
    'H21 E29',
    'a final decline leaves a marker',
    `${statements}/leave-hot.ts`,
    'if (burial.terminalForMs === null || row.key_hash === null) return false',
    'if (burial.terminalForMs !== null || row.key_hash === null) return false',
    {
      [conformance]: ['E29 a decline that is final answers duplicates with its failure'],
      [doubt]: ['E29 a decline is final'],
    },
  ),
  guard(
    'E13',
    'the window of a key is asked before a repeat',
    'src/core/doubt.ts',
    'if (!replayed && keyStillSafe(effect, firstAgeMs, bounds)) return',
    'if (!replayed) return',
    { 'src/core/doubt.test.ts': ['key too old'], [doubt]: ['E13 longer ago than the provider remembers'] },
  ),
  guard(
    'E25',
    'an absence seen too early is not believed',
    'src/core/doubt.ts',
    'if (leftMs > 0) return',
    'if (leftMs > Infinity) return',
    {
      'src/core/doubt.test.ts': ['absent, seen at once'],
      'src/engine/process/effect-caller.test.ts': ['E25 waits where it says absent too early'],
    },
  ),
  guard(
    'E14',
    'an effect with another input is not called',
    caller,
    'if (intents.some((intent) => intent.fingerprint !== call.fingerprint)) {',
    'if (intents.some((intent) => intent.fingerprint === undefined)) {',
    { [scope]: ['with another input than recorded is never called'], [doubt]: ['E14 a retry with another input'] },
  ),
  guard(
    'E3',
    'the ledger asks for the lease',
    `${statements}/ledger.ts`,
    'return session.get(selectOwned, jobId, token) !== undefined',
    'return session.get(selectOwned, jobId, token) !== null',
    { [conformance]: ['H8 without the lease nothing is opened'] },
  ),
  guard(
    'E3',
    'the ctx is asked before an effect',
    'src/engine/process/effect-scope.ts',
    `    this.#guards.check(effect.name)
    if (item !== undefined)`,
    '    if (item !== undefined)',
    { [scope]: ['refuse it after lease loss, before anything is written'] },
  ),
  guard('E4', 'a last look before the call', caller, '        await this.#lastLook(call, id)\n', '', {
    [scope]: ['E4 look again between the intent and the call'],
  }),
  guard(
    'E5',
    'a late outcome is evidence',
    `${statements}/ledger.ts`,
    `    case 'close':
      return close(tx, request)`,
    `    case 'close':
      return tx.session.get(
        'SELECT 1 FROM chokaq_effects e JOIN chokaq_jobs_hot h ON h.id = e.job_id AND h.token = e.token WHERE e.id = ?',
        request.id,
      ) === undefined
        ? { kind: 'closed', double: false }
        : close(tx, request)`,
    { [conformance]: ['E5 a late outcome is evidence'] },
  ),
  guard(
    'E5',
    'an absence is not believed while a late call may come',
    'src/core/doubt.ts',
    'if (unproven.length > 0) {',
    'if (unproven.length > 99) {',
    { [doubt]: ['E5 before the call arrived'] },
  ),
  guard(
    'E7',
    'an intent whose reply was lost is known again',
    `${statements}/ledger.ts`,
    `  if (rows.some((row) => row.id === id)) return { kind: 'opened', firstAgeMs }\n`,
    '',
    { [conformance]: ['E7 an intent repeated after a lost reply'] },
  ),
  guard(
    'E12',
    'a record belongs to the key, not to the job',
    'src/engine/worker-effects.ts',
    'keyRef: gate.keyHash ?? `job:${lease.jobId}`,',
    'keyRef: `job:${lease.jobId}`,',
    { [doubt]: ['E12 after MaxRetriesExceeded'] },
  ),
  guard(
    'E13',
    'the window is looked at again when the intent is durable',
    caller,
    'if (doubt && !keyStillSafe(call.effect, verdict.firstAgeMs, this.#services.bounds)) {',
    `if (doubt && call.effect.name === '') {`,
    { [scope]: ['E13 look at the window once more'] },
  ),
  guard(
    'E21 E22',
    'the item is part of the provider key',
    caller,
    'JSON.stringify([kind, name, item, rotations])',
    'JSON.stringify([kind, name, rotations])',
    { [scope]: ['E21 E22 has a key of its own'] },
  ),
  guard(
    'E21 E22',
    'the item is part of the record',
    `${statements}/ledger.ts`,
    `FROM chokaq_effects WHERE key_ref = ? AND generation = ? AND kind = ? AND name = ? AND item = ?
  ORDER BY opened_at, id`,
    `FROM chokaq_effects WHERE key_ref = ? AND generation = ? AND kind = ? AND name = ? AND (item = ? OR item <> '')
  ORDER BY opened_at, id`,
    { [conformance]: ['E21 names, items and kinds'], [doubt]: ['E22 a loop of 500 mails'] },
  ),
  guard(
    'E23',
    'a dead owner is proven dead',
    `${statements}/ledger.ts`,
    'UPDATE chokaq_effects SET owner_gone = 1',
    'UPDATE chokaq_effects SET owner_gone = 0',
    { [doubt]: ['E23 before the call arrived'] },
  ),
  guard(
    'E24 E44',
    'a provider key is the same on every attempt',
    'src/engine/worker-effects.ts',
    'effectKey({ ...key, name }, (text)',
    'effectKey({ ...key, name: `${name} ${of.attempt}` }, (text)',
    { [doubt]: ['E24 after the provider acted'] },
  ),
  guard(
    'E24',
    'what reconcile finds is adopted',
    caller,
    `    if (typeof found === 'object') return { value: await this.#adopt(call, doubt, found.present) }\n`,
    `    if (typeof found === 'object') return { absent: doubt, rotations }\n`,
    { 'src/engine/process/effect-caller.test.ts': ['E24 adopts what it finds'] },
  ),
  guard(
    'E25',
    'not knowing ends after reconcileFor',
    'src/core/doubt.ts',
    'oldestMs > effect.reconcileForMs + settleAfterMs(effect, bounds)',
    'oldestMs > Infinity',
    { 'src/core/doubt.test.ts': ['unknown, after reconcileFor'] },
  ),
  guard(
    'E26',
    'a connection that broke in mid-call proves nothing',
    'src/core/classify.ts',
    `if (duringTheCall.has(code)) return 'during'`,
    `if (duringTheCall.has(code)) return 'before'`,
    { [doubt]: ['E26 a lost answer of a provider without keys'] },
  ),
  guard(
    'E26',
    'a refused connection proves that nothing happened',
    'src/core/classify.ts',
    `return beforeTheCall.has(code) ? 'before' : undefined`,
    'return undefined',
    { [doubt]: ['E26 an error that proves that nothing happened'] },
  ),
  guard(
    'E27',
    'an error that the provider replays is seen for that',
    caller,
    `const replayed = serverError && sameAgain && effect.provider.keyed?.onProviderError === 'replayed'`,
    'const replayed = false',
    { [doubt]: ['E27 a stored 500 is not asked for for ever'] },
  ),
  guard(
    'E28',
    'only an error of the server is one that it stored',
    caller,
    'const serverError = status !== undefined && status >= 500',
    'const serverError = status !== undefined && status >= 400',
    { 'src/engine/process/effect-caller.test.ts': ['E28 an answer that the same key is at work'] },
  ),
  guard(
    'E29',
    'a recorded decline is thrown again',
    caller,
    'throw declined(effect.name, known.intent)',
    'return { absent: [], rotations }',
    { [doubt]: ['E29 a decline that the handler deals with'] },
  ),
  guard(
    'E30',
    'what happened is done, whatever its result',
    caller,
    `this.#record(effect, id, { state: 'done', failure: dropped`,
    `this.#record(effect, id, { state: 'ambiguous', failure: dropped`,
    { [scope]: ['E30 a result that cannot be stored'] },
  ),
  guard(
    'E31',
    'a result is told by its presence',
    caller,
    'text = value === undefined ? null : this.#services.jsonText(value, `The result of effect',
    'text = !value ? null : this.#services.jsonText(value, `The result of effect',
    { [scope]: ['E31 remembers falsy results'] },
  ),
  guard(
    'E31',
    'a memo is told by its presence',
    'src/engine/process/effect-scope.ts',
    `if (known.kind === 'recalled' && known.found) return`,
    `if (known.kind === 'recalled' && known.result !== null) return`,
    { [scope]: ['E31 is computed once'] },
  ),
  guard(
    'E32',
    'what an effect asks of its job stands',
    'src/engine/process/effect-scope.ts',
    '    if (demand !== undefined) {',
    `    if (demand !== undefined && end.kind === 'aborted') {`,
    { 'src/engine/process/effect-caller.test.ts': ['E32 that ask for a person stand'] },
  ),
  guard(
    'E33',
    'an effect that nobody awaits fails the attempt',
    'src/engine/process/effect-scope.ts',
    `if (unawaited !== undefined && end.kind === 'returned') {`,
    `if (unawaited !== undefined && end.kind === 'parked') {`,
    { [scope]: ['E33 fail a handler that returned'] },
  ),
  guard(
    'E34',
    'no effect inside a transaction',
    'src/engine/process/handler-ctx.ts',
    `if (isInTransaction()) throw`,
    `if (effect === '') throw`,
    { [edges]: ['E34 an effect inside a transaction'] },
  ),
  guard(
    'E42',
    'an outcome that cannot be stored leaves a doubt, and no crash',
    'src/engine/process/effect-recorder.ts',
    `    } catch {
      // The intent stays open and the next attempt finds it in doubt, which is the truth.
    }`,
    '    } finally {\n    }',
    { 'src/engine/process/effect-caller.test.ts': ['E42 a storage that refuses the outcome'] },
  ),
  guard(
    'E48',
    'a recorded effect that is not declared stops a later attempt',
    'src/engine/process/effect-scope.ts',
    'if (orphans.length > 0) {',
    'if (orphans.length > 99) {',
    { [scope]: ['E48 stop a later attempt'] },
  ),
  guard(
    'E48',
    'a recorded effect that is not declared stops the next job of the key',
    'src/engine/process/effect-scope.ts',
    '    if (orphan === undefined) return\n',
    '    if (orphan !== null) return\n',
    { [scope]: ['E48 stop the first attempt'], [doubt]: ['E48 a deploy that renames'] },
  ),
]
