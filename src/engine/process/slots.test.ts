import { describe, expect, test } from 'vitest'
import { Slots } from './slots.ts'

const healthy = { suspect: false }
const suspect = { suspect: true }
const forever = new Promise<never>(() => undefined)

describe('Slots', () => {
  test('count what runs', () => {
    const slots = new Slots(2)
    slots.take(healthy)
    expect([slots.free, slots.runningCount, slots.mayRun(healthy)]).toEqual([1, 1, true])
    slots.take(healthy)
    expect([slots.free, slots.mayRun(healthy)]).toEqual([0, false])
    slots.give(healthy)
    expect(slots.free).toBe(1)
  })

  test('a lower limit stops nothing that runs', () => {
    const slots = new Slots(3)
    for (let i = 0; i < 3; i += 1) slots.take(healthy)
    slots.limit = 1
    expect([slots.free, slots.runningCount]).toEqual([0, 3])
    slots.give(healthy)
    slots.give(healthy)
    expect(slots.free).toBe(0)
    slots.give(healthy)
    expect(slots.free).toBe(1)
  })

  test('one suspect at a time, beside others', () => {
    const slots = new Slots(3)
    slots.take(suspect)
    expect([slots.mayRun(suspect), slots.mayRun(healthy)]).toEqual([false, true])
    slots.give(suspect)
    expect(slots.mayRun(suspect)).toBe(true)
  })

  test('clog with more abandoned handlers than half the limit, until they end', async () => {
    const slots = new Slots(4)
    let end: () => void = () => undefined
    const ended = new Promise<void>((resolve) => (end = resolve))
    let changes = 0
    slots.abandon(forever, () => undefined)
    slots.abandon(forever, () => undefined)
    expect([slots.clogged, slots.free]).toEqual([false, 4])
    slots.abandon(ended, () => (changes += 1))
    expect([slots.clogged, slots.free, slots.abandonedCount]).toEqual([true, 0, 3])
    end()
    await ended
    expect([slots.clogged, slots.free, changes]).toEqual([false, 4, 1])
  })

  test('an abandoned handler that rejects at last has ended, too', async () => {
    const slots = new Slots(1)
    const rejected = Promise.reject(new Error('late'))
    slots.abandon(rejected, () => undefined)
    expect(slots.clogged).toBe(true)
    await rejected.catch(() => undefined)
    expect(slots.abandonedCount).toBe(0)
  })
})
