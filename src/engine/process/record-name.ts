/** What handlers name in the ledger is part of its index, and shares a write with the records of other jobs. */
import { ChokaQError } from '../../core/errors.ts'

const maxLength = 500
/** A NUL that PostgreSQL refuses, and half a character that no UTF-8 can tell from another. */
const unstorable = /[\0\p{Surrogate}]/u

/** Throws CHOKAQ_OPTION_INVALID: one bad text would keep the outcomes of its neighbours from being stored. */
export function refuseUnstorable(option: string, text: unknown, minLength: 0 | 1): void {
  const fits = typeof text === 'string' && text.length >= minLength && text.length <= maxLength
  if (fits && !unstorable.test(text)) return
  throw new ChokaQError('CHOKAQ_OPTION_INVALID', {
    option,
    value: typeof text === 'string' ? `a text of ${text.length} characters` : String(text),
    expected: `a text of ${minLength} to ${maxLength} characters, without NUL and half characters`,
  })
}
