/** GitHub's webhook signature: HMAC-SHA256 of the raw body. */
import { createHmac } from 'node:crypto'

export const signatureHeader = 'x-hub-signature-256'

export function sign(secret: string, body: string): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
}
