import { describe, expect, test } from 'vitest'
import type { FetchedJob } from '../core/job.ts'
import { InHand, type HeldJob } from './in-hand.ts'

function held(jobId: string, token = 1): HeldJob {
  const job = { lease: { jobId, token } } as FetchedJob
  return {
    job,
    workerId: 'w',
    heldSinceMs: 0,
    phase: 'buffered',
    inSlot: false,
    cancelRequested: false,
    ran: false,
    abort: undefined,
  }
}

describe('InHand', () => {
  test('counts its jobs by phase', () => {
    const inHand = new InHand()
    const [a, b] = [held('a'), held('b')]
    inHand.add(a)
    inHand.add(b)
    inHand.move(a, 'running')
    expect([inHand.count('buffered'), inHand.count('running'), inHand.size]).toEqual([1, 1, 2])
    inHand.remove(a)
    inHand.remove(a)
    expect([inHand.count('running'), inHand.size]).toEqual([0, 1])
    inHand.move(a, 'settling')
    expect(inHand.count('settling')).toBe(0)
  })

  test('tells leases, and finds a job by its id', () => {
    const inHand = new InHand()
    inHand.add(held('a', 7))
    expect(inHand.leases()).toEqual([{ jobId: 'a', token: 7 }])
    expect(inHand.byJobId('a')?.job.lease.token).toBe(7)
    expect(inHand.byJobId('b')).toBeUndefined()
  })

  test('is idle with stranded jobs, which are in hand for ever', () => {
    const inHand = new InHand()
    const a = held('a')
    expect(inHand.idle).toBe(true)
    inHand.add(a)
    expect(inHand.idle).toBe(false)
    inHand.move(a, 'stranded')
    expect([inHand.idle, inHand.size, inHand.leases().length]).toEqual([true, 1, 1])
  })
})
