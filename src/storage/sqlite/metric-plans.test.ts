// A chart reads ranges of the key of its buckets, and never a table of jobs.
import { describe, expect, it } from 'vitest'
import { openStorage, spyDriver } from '../../../test/storage/scratch-sqlite.ts'
import { newJob } from '../../testing/conformance/new-job.ts'
import { createFakeRuntime } from '../../testing/fake-runtime.ts'

describe('the plans of metrics', () => {
  it('search buckets by their key, to read them and to roll them up', async () => {
    const runtime = createFakeRuntime()
    const driver = spyDriver()
    const storage = openStorage(':memory:', runtime, { driver })
    await storage.enqueue([newJob(runtime)])
    await storage.prune({ limit: 5, archiveRetentionMs: 0, dlqRetentionMs: 0 })
    await runtime.advance(40 * 86_400_000)
    for (let n = 0; n < 3; n += 1) await storage.prune({ limit: 5, archiveRetentionMs: 0, dlqRetentionMs: 0 })
    await storage.inspector.metrics({ fromMs: 0, toMs: runtime.clock.nowMs(), stepMs: 60_000, queue: 'default' })
    const [db] = driver.opened
    const statements = [...driver.prepared].filter((sql) => sql.includes('metric_buckets'))
    const plans = statements.map((sql) => {
      const nulls = [...sql.matchAll(/\?/g)].map(() => null)
      const rows = db?.prepare<{ readonly detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...nulls) ?? []
      return { sql, details: rows.map(({ detail }) => detail) }
    })
    const details = plans.flatMap((plan) => plan.details)
    expect(details.filter((detail) => /SCAN (b|w|chokaq_metric_buckets|chokaq_jobs)/.test(detail))).toEqual([])
    expect(details.filter((detail) => detail.includes('chokaq_jobs'))).toEqual([])
    const read = plans.find(({ sql }) => sql.startsWith('SELECT at /'))
    const [buckets] = (read?.details ?? []).filter((detail) => detail.includes('metric_buckets'))
    expect(buckets).toContain('SEARCH chokaq_metric_buckets USING PRIMARY KEY (series=? AND step=? AND at>? AND at<?)')
    const [recent] = (read?.details ?? []).filter((detail) => detail.includes('metric_recent'))
    expect(recent).toContain('SEARCH chokaq_metric_recent USING PRIMARY KEY (at>? AND at<?)')
    expect(plans.filter(({ sql }) => /^(DELETE|INSERT)/.test(sql)).length).toBeGreaterThanOrEqual(3)
  })
})
