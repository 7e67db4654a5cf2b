/** Who did what, and why. */
import type { Actor } from '../../../core/inspector.ts'
import type { Transaction } from '../transactions.ts'

const insertAudit = `INSERT INTO chokaq.audit_log (at, actor, note, act, subject, detail)
  VALUES (chokaq.now_ms(), $1, $2, $3, $4, $5)`
/** Neither NUL nor half a surrogate pair can be stored, and an act must not fail because of its note. */
const unstorable = /[\0\p{Surrogate}]/gu

/** One line of the audit log, in the transaction of the act. */
export async function audit(
  { session }: Transaction,
  by: Actor,
  act: string,
  subject: string,
  detail: object,
): Promise<void> {
  const texts = [by.actor, by.note, act, subject].map((text) => text.replace(unstorable, '\ufffd'))
  await session.all(insertAudit, ...texts, JSON.stringify(detail))
}
