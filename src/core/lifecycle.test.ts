import { describe, expect, test } from 'vitest'
import { counterNames } from './counters.ts'
import { hotStates } from './job.ts'
import { isTransition, transitions, verbs, type Place } from './lifecycle.ts'

const places: readonly Place[] = [...hotStates, 'archive', 'dlq', 'nowhere']

describe('the state machine', () => {
  test('has one row for every verb, and no other', () => {
    expect(transitions.map(({ verb }) => verb)).toEqual([...verbs])
  })

  test('names places and counters that exist, each once', () => {
    for (const { verb, from, to, counters } of transitions) {
      for (const place of [...from, ...to]) expect(places, verb).toContain(place)
      for (const counter of counters) expect(counterNames, verb).toContain(counter)
      for (const list of [from, to, counters]) expect(new Set(list).size, verb).toBe(list.length)
      expect(from.length * to.length, verb).toBeGreaterThan(0)
    }
  })

  test('leaves no place without a way in and a way on', () => {
    for (const place of places) {
      expect(
        transitions.some(({ to }) => to.includes(place)),
        `into ${place}`,
      ).toBe(true)
      expect(
        transitions.some(({ from }) => from.includes(place)),
        `out of ${place}`,
      ).toBe(true)
    }
  })

  test('lets only an owner, a rescue or an operator end a job', () => {
    const endings = transitions.filter(({ to }) => to.includes('archive') || to.includes('dlq'))
    expect(new Set(endings.map(({ stage }) => stage))).toEqual(new Set(['settle', 'sweep', 'operator']))
  })

  test('answers for single steps', () => {
    expect(isTransition('fetch', 'pending', 'fetched')).toBe(true)
    expect(isTransition('fetch', 'scheduled', 'fetched')).toBe(false)
    expect(isTransition('complete', 'fetched', 'archive')).toBe(false)
    expect(isTransition('resurrect', 'archive', 'pending')).toBe(false)
    expect(isTransition('cancel', 'pending', 'pending')).toBe(false)
  })
})
