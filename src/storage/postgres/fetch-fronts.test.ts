import { describe, expect, it } from 'vitest'
import type { FetchedJob } from '../../core/job.ts'
import { FetchFronts, type Look } from './fetch-fronts.ts'

const job = (priority: number, runAtMs: number, type = 'a'): FetchedJob => ({ type, priority, runAtMs }) as FetchedJob
const atMs = 1_000_000
/** Where a front stands that is up to date: two seconds behind the present. */
const present = 998_000

const slowLook = (jobs: readonly FetchedJob[], more: Partial<Look> = {}): Look => ({
  queue: 'default',
  types: ['a', 'b'],
  limit: 2,
  isWhole: true,
  jobs,
  atMs,
  deadCount: 1_000_000,
  tookMs: 500,
  nowMs: 0,
  ...more,
})

function frontsAfter(...looks: readonly Look[]) {
  const fronts = new FetchFronts()
  for (const look of looks) fronts.learn(look)
  return fronts.of('default', 1)
}

describe('when fronts are used', () => {
  it.each([
    ['few rows are dead', { deadCount: 19_999 }],
    ['the look was quick', { tookMs: 10 }],
    ['the look gave many jobs for its time', { tookMs: 30, jobs: Array.from({ length: 500 }, () => job(0, 1)) }],
  ])('looks at everything while %s', (_, more) => {
    expect(frontsAfter(slowLook([job(0, 1), job(0, 2)], more))).toBeUndefined()
  })

  it('rests from whole looks twenty times as long as one took, half a minute at most', () => {
    for (const [tookMs, restMs] of [
      [500, 10_000],
      [4_000, 30_000],
    ] as const) {
      const fronts = new FetchFronts()
      fronts.learn(slowLook([job(0, 1), job(0, 2)], { tookMs, nowMs: 7 }))
      expect(fronts.of('default', restMs + 6)).toBeDefined()
      expect(fronts.of('default', restMs + 7)).toBeUndefined()
    }
  })

  it('knows nothing of another queue', () => {
    const fronts = new FetchFronts()
    fronts.learn(slowLook([job(0, 1), job(0, 2)]))
    expect(fronts.of('other', 1)).toBeUndefined()
  })

  it('forgets all of them', () => {
    const fronts = new FetchFronts()
    fronts.learn(slowLook([job(0, 1), job(0, 2)]))
    fronts.forget()
    expect(fronts.of('default', 1)).toBeUndefined()
  })
})

describe('where a front stands', () => {
  it('is the last row that was taken, and nothing is known of lower priorities', () => {
    expect(frontsAfter(slowLook([job(5, 100), job(5, 200)]))?.get('a')).toEqual({
      priority: 5,
      aboveMs: present,
      sameMs: 200,
      belowMs: 0,
    })
  })

  it('stays behind the present for rows that are committed late', () => {
    expect(frontsAfter(slowLook([job(0, 1), job(0, atMs)]))?.get('a')).toMatchObject({ sameMs: present })
  })

  it('is the same for all priorities and types where everything was taken', () => {
    const all = { priority: 3, aboveMs: present, sameMs: present, belowMs: present }
    const fronts = frontsAfter(slowLook([job(3, 100)]))
    expect(fronts?.get('a')).toEqual(all)
    expect(fronts?.get('b')).toEqual(all)
  })

  it('knows nothing of a type whose lane was not reached', () => {
    expect(frontsAfter(slowLook([job(0, 1), job(0, 2)]))?.get('b')).toBeUndefined()
  })

  it('keeps what it knows of lower priorities when it goes down, and the least of it when it goes up', () => {
    const down = frontsAfter(slowLook([job(5, 100), job(5, 200)]), slowLook([job(5, 300), job(1, 50)]))
    expect(down?.get('a')).toEqual({ priority: 1, aboveMs: present, sameMs: 50, belowMs: 0 })
    const up = frontsAfter(slowLook([]), slowLook([job(5, 100), job(5, 200)]))
    expect(up?.get('a')).toEqual({ priority: 5, aboveMs: present, sameMs: 200, belowMs: present })
  })
})
