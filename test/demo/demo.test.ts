// The real thing: `chokaq demo` with its processes, its kills and its exit codes.
import { tmpdir } from 'node:os'
import { afterAll, describe, expect, it } from 'vitest'
import { claimOutcomes } from '../../src/core/counters.ts'
import type { Account } from '../../src/cli/demo/accounting.ts'
import { spawnCli } from '../cli/spawned-cli.ts'
import { createDatabase } from '../postgres/database.ts'

const deadlineMs = 120_000
const small = ['demo', '--deliveries', '60', '--seed', '11']

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const database = await createDatabase({ isEmpty: true })
afterAll(() => database.drop())

describe('chokaq demo', () => {
  it('does the same on a server, and leaves nothing there', { timeout: deadlineMs }, async () => {
    const demo = spawnCli([...small, '--json', '--db', database.url], tmpdir(), deadlineMs)
    expect(await demo.done, demo.stdout() + demo.stderr()).toBe(0)
    expect(JSON.parse(demo.stdout())).toMatchObject({ completedCount: 40, lost: [], problems: [] })
    const schemas = await database.query(`SELECT nspname FROM pg_namespace WHERE nspname LIKE 'chokaq%'`)
    expect(schemas).toEqual([])
  })

  it('charges each payment attempt once, through kills and faults', { timeout: deadlineMs }, async () => {
    const demo = spawnCli([...small, '--json'], tmpdir(), deadlineMs)
    expect(await demo.done, demo.stdout() + demo.stderr()).toBe(0)
    const result = JSON.parse(demo.stdout()) as Account
    expect(result).toMatchObject({
      requestCount: 60,
      deliveryCount: 40,
      redeliveryCount: 20,
      completedCount: 40,
      attemptsByCharges: [{ charges: 1, attempts: 40 }],
      lost: [],
      deadCount: 0,
      conflictCount: 2,
      problems: [],
    })
    const claims = new Map(result.claims.map(({ outcome, count }) => [outcome, count]))
    expect([...claims.keys()]).toEqual([...claimOutcomes])
    // A charge and an order for each delivery; what was killed was claimed again.
    expect(claims.get('completed')).toBe(80)
    expect(claims.get('claimed')).toBeGreaterThan(80)
    expect(claims.get('complete_conflict')).toBe(0)
    expect(result.handlerKillCount).toBeGreaterThanOrEqual(5)
    expect(result.chargeKillCount).toBeGreaterThanOrEqual(2)
    expect(result.extraAttempts.map(({ why }) => why)).toContain('worker killed')
    const [card, bank, voucher] = result.providers
    for (const one of [card, bank, voucher]) expect(one?.chargeCount).toBe(one?.paymentCount)
    // Which provider a kill strikes depends on the moment; that some call was left in doubt does not.
    expect(result.providers.reduce((total, one) => total + one.inDoubtCount, 0)).toBeGreaterThan(0)
    expect((voucher?.adoptedCount ?? 0) + (voucher?.retriedCount ?? 0)).toBe(voucher?.inDoubtCount)
    expect([card?.adoptedCount, bank?.adoptedCount]).toEqual([0, 0])
  })

  it('shows double charges without protection on the same seed', { timeout: deadlineMs }, async () => {
    const demo = spawnCli([...small, '--no-protection', '--json'], tmpdir(), deadlineMs)
    expect(await demo.done, demo.stdout() + demo.stderr()).toBe(0)
    const result = JSON.parse(demo.stdout()) as Account
    expect(result.deliveryCount).toBe(40)
    expect(result.doubleCount).toBeGreaterThan(0)
    expect(result.overchargedCents).toBeGreaterThan(0)
  })

  it('takes its processes along when it is interrupted', { timeout: deadlineMs }, async () => {
    const demo = spawnCli(small, tmpdir(), deadlineMs)
    const line = await demo.line(/^processes: /)
    const pids = [...line.matchAll(/pid (\d+)/g)].map(([, pid]) => Number(pid))
    expect(pids).toHaveLength(3)
    expect(pids.every(isRunning)).toBe(true)
    await demo.line(/^kill 1: /)
    demo.child.kill('SIGINT')
    expect(await demo.done).toBe(130)
    expect(pids.some(isRunning)).toBe(false)
  })

  it('refuses wrong options', async () => {
    const demo = spawnCli(['demo', '--deliveries', '7'], tmpdir())
    expect(await demo.done).toBe(2)
    expect(demo.stderr()).toContain('Give a whole number from 60')
    const file = spawnCli(['demo', '--db', 'shop.db'], tmpdir())
    expect(await file.done).toBe(2)
    expect(file.stderr()).toMatch(/^CHOKAQ_CLI_USAGE/)
  })
})
