import { describe, expect, it } from 'vitest'
import { claimOutcomes, type ClaimOutcome } from '../../src/core/counters.ts'
import { account, type Evidence, type JobFact } from '../../src/cli/demo/accounting.ts'
import type { ClaimFact } from '../../src/cli/demo/claims.ts'
import { amountOf, paymentAttemptOf } from '../../src/cli/demo/deliveries.ts'
import { providerOf, type ProviderName } from '../../src/cli/demo/provider/names.ts'

const ids = ['d1', 'd2', 'd3']

function job(id: string, kind: JobFact['kind'], over: Partial<JobFact> = {}): JobFact {
  return {
    id: `${kind}-${id}`,
    kind,
    state: 'completed',
    reason: null,
    paymentAttemptId: paymentAttemptOf(id),
    attempt: 1,
    callCount: 1,
    causes: [],
    ...over,
  }
}

/** Books that agree: three deliveries, a duplicate, a conflict, and five kills that hit charge d1. */
function goodBooks(): Evidence {
  const interruption = (attempt: number) => ({ jobId: 'charge-d1', kind: 'charge', attempt }) as const
  return {
    isProtected: true,
    sent: [
      ...ids.map((deliveryId) => ({ deliveryId, role: 'first', outcome: 'enqueued' }) as const),
      { deliveryId: 'd2', role: 'together', outcome: 'already-active' },
      { deliveryId: 'd3', role: 'changed', outcome: 'conflict' },
    ],
    jobs: [
      job('d1', 'charge', { attempt: 6, causes: Array.from({ length: 5 }, () => 'worker killed') }),
      job('d2', 'charge', { attempt: 2, causes: ['provider answered 500'] }),
      job('d3', 'charge'),
      ...ids.map((id) => job(id, 'order')),
      job('d3', 'charge', { id: 'conflict-d3', state: 'dead', reason: 'KeyReused', attempt: 0 }),
    ],
    charges: ids.map((id) => ({
      provider: providerOf(paymentAttemptOf(id)),
      chargeId: `ch_${id}`,
      idempotencyKey: `key-${id}`,
      paymentAttemptId: paymentAttemptOf(id),
      amountCents: amountOf(id),
      worker: 'worker-a.1',
    })),
    orders: ids.map((id) => ({
      paymentAttemptId: paymentAttemptOf(id),
      chargeId: `ch_${id}`,
      amountCents: amountOf(id),
      writtenCount: 1,
    })),
    kills: [1, 2, 3, 4, 5].map((attempt) => ({
      worker: `worker-b.${attempt}`,
      interruptions: [interruption(attempt)],
      chargesInFlight: 1,
      rescuedAfterMs: 200,
    })),
    reconciledJobIds: [],
    decisions: [],
    claims: claimOutcomes.map((outcome) => {
      const count = { claimed: 11, completed: 6 }[outcome as string] ?? 0
      return { outcome, storedCount: count, scrapedCount: count }
    }),
  }
}

describe('books that agree', () => {
  it('have no problems', () => {
    expect(account(goodBooks()).problems).toEqual([])
  })

  it('are counted', () => {
    expect(account(goodBooks())).toMatchObject({
      requestCount: 5,
      deliveryCount: 3,
      redeliveryCount: 2,
      duplicates: [
        { role: 'changed', outcome: 'conflict', count: 1 },
        { role: 'together', outcome: 'already-active', count: 1 },
      ],
      completedCount: 3,
      conflictCount: 1,
      deadCount: 0,
      killCount: 5,
      handlerKillCount: 5,
      chargeKillCount: 5,
      interruptedCount: 5,
      extraAttempts: [
        { why: 'worker killed', count: 5 },
        { why: 'provider answered 500', count: 1 },
      ],
      attemptsByCharges: [{ charges: 1, attempts: 3 }],
      chargeCount: 3,
      doubleCount: 0,
      overchargedCents: 0,
    })
  })
})

describe('doubts', () => {
  const idAt = (provider: ProviderName, nth = 0): string =>
    Array.from({ length: 200 }, (_, i) => `x${i}`).filter((id) => providerOf(paymentAttemptOf(id)) === provider)[nth] ??
    ''

  it('are counted once per payment, by provider and by how they ended', () => {
    const [card, bank, voucher, other] = [idAt('card'), idAt('bank'), idAt('voucher'), idAt('voucher', 1)]
    const { providers } = account({
      ...goodBooks(),
      sent: [card, bank, voucher, other].map((deliveryId) => ({ deliveryId, role: 'first', outcome: 'enqueued' })),
      jobs: [
        job(card, 'charge', { callCount: 3 }),
        job(bank, 'charge', { callCount: 2 }),
        job(voucher, 'charge'),
        job(other, 'charge', { callCount: 2 }),
      ],
      reconciledJobIds: [`charge-${bank}`],
      decisions: [
        { paymentAttemptId: paymentAttemptOf(voucher), decision: 'adopt' },
        { paymentAttemptId: paymentAttemptOf(other), decision: 'retry' },
      ],
    })
    const none = { chargeCount: expect.any(Number) as number, reconciledCount: 0, adoptedCount: 0, retriedCount: 0 }
    expect(providers).toEqual([
      { ...none, provider: 'card', paymentCount: 1, inDoubtCount: 1 },
      { ...none, provider: 'bank', paymentCount: 1, inDoubtCount: 1, reconciledCount: 1 },
      { ...none, provider: 'voucher', paymentCount: 2, inDoubtCount: 2, adoptedCount: 1, retriedCount: 1 },
    ])
  })
})

describe('of two requests at the same moment', () => {
  it('the one that made the job counts as the first', () => {
    const books = goodBooks()
    const turned = { first: 'already-active', together: 'enqueued' } as const
    const sent = books.sent.map((one) =>
      one.deliveryId === 'd2' && (one.role === 'first' || one.role === 'together')
        ? { ...one, outcome: turned[one.role] }
        : one,
    )
    expect(account({ ...books, sent })).toEqual(account(books))
  })
})

describe('a planted error', () => {
  const problemsOf = (change: (books: Evidence) => Partial<Evidence>): readonly string[] => {
    const books = goodBooks()
    return account({ ...books, ...change(books) }).problems
  }

  const uncounted = '6 claims ended as completed, and 5 jobs with a key did'
  const miscounted = (outcome: ClaimOutcome, change: Partial<ClaimFact>) => (books: Evidence) => ({
    claims: books.claims.map((claim) => (claim.outcome === outcome ? { ...claim, ...change } : claim)),
  })

  it.each<[string, (books: Evidence) => Partial<Evidence>, string[]]>([
    [
      'a scrape that says something else',
      miscounted('released', { scrapedCount: 1 }),
      ['/metrics has 1 claims "released", the database 0'],
    ],
    [
      'an outcome that no scrape tells',
      miscounted('empty_key', { scrapedCount: Number.NaN }),
      ['/metrics has NaN claims "empty_key", the database 0'],
    ],
    [
      'a conflict of completions',
      miscounted('complete_conflict', { storedCount: 1, scrapedCount: 1 }),
      ['1 jobs completed beside another'],
    ],
    [
      'a double charge',
      ({ charges }) => ({ charges: [...charges, ...charges.slice(0, 1).map((c) => ({ ...c, chargeId: 'ch_again' }))] }),
      ['pa_d1 was charged 2 times'],
    ],
    [
      'a missing charge',
      ({ charges }) => ({ charges: charges.slice(1) }),
      ['pa_d1 was never charged', 'the order of pa_d1 names a charge that the provider does not know'],
    ],
    [
      'a charge that nobody asked for',
      ({ charges }) => ({
        charges: [
          ...charges,
          ...charges.slice(0, 1).map((c) => ({ ...c, paymentAttemptId: 'pa_x', chargeId: 'ch_x' })),
        ],
      }),
      ['charge ch_x belongs to no delivery: pa_x'],
    ],
    [
      'a wrong amount',
      ({ charges }) => ({ charges: charges.map((c, i) => (i === 0 ? { ...c, amountCents: c.amountCents + 1 } : c)) }),
      ['pa_d1 was charged a wrong amount'],
    ],
    [
      'a charge at the wrong provider',
      ({ charges }) => ({
        charges: charges.map((c, i) => (i === 0 ? { ...c, provider: c.provider === 'card' ? 'bank' : 'card' } : c)),
      }),
      ['pa_d1 was charged by the wrong provider'],
    ],
    [
      'a lost delivery',
      ({ jobs }) => ({ jobs: jobs.filter(({ id }) => id !== 'charge-d2') }),
      ['delivery d2 was accepted and is lost', uncounted],
    ],
    [
      'a delivery that was never accepted',
      ({ sent, jobs }) => ({
        sent: sent.map((one) => (one.deliveryId === 'd2' ? { ...one, outcome: 'refused' } : one)),
        jobs: jobs.filter(({ id }) => id !== 'charge-d2'),
      }),
      ['delivery d2 was never accepted', uncounted],
    ],
    [
      'a job that died',
      ({ jobs }) => ({
        jobs: jobs.map((one) => (one.id === 'order-d1' ? { ...one, state: 'dead', reason: 'Interrupted' } : one)),
      }),
      ['order job order-d1 is dead: Interrupted', uncounted],
    ],
    [
      'a job that never ended',
      ({ jobs }) => ({ jobs: jobs.map((one) => (one.id === 'order-d1' ? { ...one, state: 'scheduled' } : one)) }),
      ['order job order-d1 is still scheduled', uncounted],
    ],
    ['a missing order', ({ orders }) => ({ orders: orders.slice(1) }), ['pa_d1 has no order']],
    [
      'an order with a charge that is not in the ledger',
      ({ orders }) => ({ orders: orders.map((o, i) => (i === 0 ? { ...o, chargeId: 'ch_other' } : o)) }),
      ['the order of pa_d1 names a charge that the provider does not know'],
    ],
    [
      'a conflict that was not kept',
      ({ jobs }) => ({ jobs: jobs.filter(({ id }) => id !== 'conflict-d3') }),
      ['the changed body of pa_d3 left 0 KeyReused rows instead of 1'],
    ],
    [
      'a conflict that nobody caused',
      ({ sent }) => ({ sent: sent.filter(({ role }) => role !== 'changed') }),
      ['pa_d3 has a KeyReused row, and nobody changed its body'],
    ],
    [
      'an attempt without a cause',
      ({ jobs }) => ({ jobs: jobs.map((one) => (one.id === 'charge-d3' ? { ...one, attempt: 2 } : one)) }),
      ['job charge-d3 was started again without a known cause, 1 times'],
    ],
    [
      'a kill whose handler did not run again',
      ({ jobs }) => ({ jobs: jobs.map((one) => (one.id === 'charge-d1' ? { ...one, attempt: 5 } : one)) }),
      ['only 4 of 5 kills interrupted a handler'],
    ],
    [
      'kills that hit no charge',
      ({ kills }) => ({ kills: kills.map((kill) => ({ ...kill, chargesInFlight: 0 })) }),
      ['only 0 of 2 kills hit a charge'],
    ],
  ])('is noticed: %s', (_, change, problems) => {
    expect(problemsOf(change)).toEqual(problems)
  })

  it('is told with its price', () => {
    const books = goodBooks()
    const [first] = books.charges
    const again = first === undefined ? [] : [{ ...first, chargeId: 'ch_again', amountCents: 7 }]
    const { doubleCount, overchargedCents } = account({ ...books, charges: [...books.charges, ...again] })
    expect({ doubleCount, overchargedCents }).toEqual({ doubleCount: 1, overchargedCents: 7 })
  })
})
