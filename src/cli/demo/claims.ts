/** What became of the claims of keys: as the database counted it, and as Prometheus would have scraped it. */
import { claimOutcomes, type ClaimOutcome } from '../../core/counters.ts'
import type { ChokaQ } from '../../engine/enqueue/client.ts'
import { openTelemetry } from '../telemetry.ts'

export interface ClaimFact {
  readonly outcome: ClaimOutcome
  /** In `stats_totals`. */
  readonly storedCount: number
  /** In `/metrics`; null where its optional packages are not installed. */
  readonly scrapedCount: number | null
}

/** Every outcome, also those that never happened. Nothing may be at work any more: the two are read one after the other. */
export async function readClaims(chokaq: ChokaQ): Promise<readonly ClaimFact[]> {
  const stats = (await chokaq.insight.stats()).filter(({ name }) => name === 'idempotency.claims')
  const text = await scrape(chokaq)
  return claimOutcomes.map((outcome) => ({
    outcome,
    storedCount: sum(stats.filter(({ label }) => label === outcome).map(({ value }) => value)),
    scrapedCount: text === undefined ? null : scrapedCount(text, outcome),
  }))
}

/** What `chokaq work --http` answers to `GET /metrics`. */
async function scrape(chokaq: ChokaQ): Promise<string | undefined> {
  const telemetry = await openTelemetry(chokaq, true)
  try {
    return await (await telemetry.metrics?.respond())?.text()
  } finally {
    await telemetry.close()
  }
}

/** Not a number where the outcome is in no line: an alarm on it would wait for ever. */
export function scrapedCount(text: string, outcome: ClaimOutcome): number {
  const lines = text
    .split('\n')
    .filter((line) => line.startsWith('chokaq_cluster_idempotency_claims_total{'))
    .filter((line) => line.includes(`outcome="${outcome}"`))
  return lines.length === 0 ? Number.NaN : sum(lines.map((line) => Number(line.slice(line.lastIndexOf(' ') + 1))))
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
