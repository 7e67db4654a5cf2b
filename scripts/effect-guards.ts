// The guards of effects: what keeps an action from being repeated, and a doubt from being forgotten.

import { guard, type Guard } from './guard.ts'

const conformance = 'test/conformance/sqlite-memory.test.ts'
const statements = 'src/storage/sqlite/statements'
const scope = 'src/engine/process/effect-scope.test.ts'

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
    { [conformance]: ['a completion refused over a doubt is recognised'] },
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
    'H21',
    'a final decline leaves a marker',
    `${statements}/leave-hot.ts`,
    'if (burial.terminalForMs === null || row.key_hash === null) return false',
    'if (burial.terminalForMs !== null || row.key_hash === null) return false',
    { [conformance]: ['E29 a decline that is final answers duplicates with its failure'] },
  ),
  guard(
    'E13',
    'the window of a key is asked before a repeat',
    'src/core/doubt.ts',
    'if (!replayed && keyStillSafe(effect, firstAgeMs, bounds)) return',
    'if (!replayed) return',
    { 'src/core/doubt.test.ts': ['key too old'] },
  ),
  guard(
    'E25',
    'an absence seen too early is not believed',
    'src/core/doubt.ts',
    'if (leftMs > 0) return',
    'if (leftMs > Infinity) return',
    { 'src/core/doubt.test.ts': ['absent, seen at once'] },
  ),
  guard(
    'E14',
    'an effect with another input is not called',
    'src/engine/process/effect-caller.ts',
    'if (intents.some((intent) => intent.fingerprint !== call.fingerprint)) {',
    'if (intents.some((intent) => intent.fingerprint === undefined)) {',
    { [scope]: ['with another input than recorded is never called'] },
  ),
]
