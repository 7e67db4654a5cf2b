/** Who did what, and why. */
import type { Actor } from '../../../core/inspector.ts'
import type { Transaction } from '../write-transaction.ts'

const insertAudit = 'INSERT INTO chokaq_audit_log (at, actor, note, act, subject, detail) VALUES (?, ?, ?, ?, ?, ?)'

/** One line of the audit log, in the transaction of the act. */
export function audit({ session, nowMs }: Transaction, by: Actor, act: string, subject: string, detail: object): void {
  session.run(insertAudit, nowMs, by.actor, by.note, act, subject, JSON.stringify(detail))
}
