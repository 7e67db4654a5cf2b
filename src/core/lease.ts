/**
 * What a worker must hold to change an owned job. The token comes from one rising sequence per database; everyone but
 * the owner raises it, so a stale worker's lease matches no row.
 */
export interface Lease {
  readonly jobId: string
  readonly token: number
}

/** A text that identifies a lease, for maps. */
export function leaseId(lease: Lease): string {
  return `${lease.jobId}/${lease.token}`
}
