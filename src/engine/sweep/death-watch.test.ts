import { describe, expect, test } from 'vitest'
import type { WorkerBeat } from '../../core/storage.ts'
import { DeathWatch } from './death-watch.ts'

const identity = { host: 'h', bootId: undefined, pidNamespace: undefined, pid: 1, startTime: undefined }
const beats = (of: Record<string, number>): WorkerBeat[] =>
  Object.entries(of).map(([workerId, beat]) => ({ workerId, beat, identity }))

const watchOf = (): DeathWatch => new DeathWatch({ deadAfterMs: 30_000, sweepMs: 5_000 })

/** Reads every 5 s; gives what was found dead at each read. */
function observe(watch: DeathWatch, reads: readonly Record<string, number>[], fromMs = 0, everyMs = 5_000): string[][] {
  return reads.map((of, i) => [...watch.observe(beats(of), fromMs + i * everyMs)])
}

describe('DeathWatch', () => {
  test('finds dead whose beat stands still for 30 s, not one read earlier', () => {
    const found = observe(watchOf(), Array<Record<string, number>>(8).fill({ a: 1 }))
    expect(found).toEqual([[], [], [], [], [], [], ['a'], ['a']])
  })

  test('a beat that moves at the last moment starts everything anew', () => {
    const reads = [
      ...Array<Record<string, number>>(6).fill({ a: 1 }),
      ...Array<Record<string, number>>(6).fill({ a: 2 }),
    ]
    expect(observe(watchOf(), reads).flat()).toEqual([])
  })

  test('a beat that goes back is a beat', () => {
    const reads = [{ a: 5 }, { a: 4 }, { a: 3 }, { a: 2 }, { a: 1 }, { a: 0 }, { a: -1 }, { a: -2 }]
    expect(observe(watchOf(), reads).flat()).toEqual([])
  })

  test('needs three successful reads, however much time has passed', () => {
    const watch = new DeathWatch({ deadAfterMs: 10_000, sweepMs: 5_000 })
    expect([watch.observe(beats({ a: 1 }), 0), watch.observe(beats({ a: 1 }), 12_000)]).toEqual([[], []])
    expect(watch.observe(beats({ a: 1 }), 13_000)).toEqual(['a'])
  })

  test('forgets all after an outage: nobody is found dead because the database was away', () => {
    const watch = watchOf()
    observe(watch, Array<Record<string, number>>(6).fill({ a: 1, b: 1 }))
    watch.restart()
    expect(observe(watch, Array<Record<string, number>>(6).fill({ a: 1, b: 1 }), 60_000).flat()).toEqual([])
    expect(watch.observe(beats({ a: 1, b: 1 }), 90_000)).toEqual(['a', 'b'])
  })

  test('forgets all after a gap of its own: a laptop that slept kills nobody', () => {
    const watch = watchOf()
    observe(watch, Array<Record<string, number>>(3).fill({ a: 1 }))
    expect(watch.observe(beats({ a: 1 }), 8 * 3_600_000)).toEqual([])
    expect(watch.observe(beats({ a: 1 }), 8 * 3_600_000 + 5_000)).toEqual([])
  })

  test('a gap of three sweeps is still none', () => {
    const watch = watchOf()
    observe(watch, Array<Record<string, number>>(4).fill({ a: 1 }))
    expect(watch.observe(beats({ a: 1 }), 30_000)).toEqual(['a'])
  })

  test('a worker that went away and came back is watched anew', () => {
    const reads = [{ a: 1 }, { a: 1 }, {}, { a: 1 }, { a: 1 }, { a: 1 }, { a: 1 }] as Record<string, number>[]
    expect(observe(watchOf(), reads).flat()).toEqual([])
  })
})
