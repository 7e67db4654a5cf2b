import { describe, expect, it } from 'vitest'
import { amountOf, planDeliveries, type PlannedDelivery } from '../../src/cli/demo/deliveries.ts'
import { loadExamples } from '../../src/cli/demo/examples.ts'
import { defaultDeliveries } from '../../src/cli/demo/settings.ts'

const examples = loadExamples()
const plan = (seed: number, count: number) => planDeliveries(seed, count, examples)
const all = (seed: number, count: number): readonly PlannedDelivery[] => {
  const { live, settled } = plan(seed, count)
  return [...live.flat(), ...settled]
}

describe('the plan of deliveries', () => {
  it('delivers every recorded webhook of every kind by default, with a third of redeliveries', () => {
    const { exampleCount, kindCount, uniqueCount, redeliveryCount } = plan(1, defaultDeliveries)
    expect({ exampleCount, kindCount }).toEqual({ exampleCount: 329, kindCount: 58 })
    expect(uniqueCount + redeliveryCount).toBe(defaultDeliveries)
    expect(redeliveryCount / defaultDeliveries).toBeGreaterThanOrEqual(0.3)
  })

  it.each([30, 60, 520, 1_000])('sends exactly %i requests, the first of each delivery before all others', (count) => {
    const requests = all(3, count)
    expect(requests).toHaveLength(count)
    const seen = new Set<string>()
    for (const { deliveryId, role } of requests) {
      expect(seen.has(deliveryId)).toBe(role !== 'first')
      seen.add(deliveryId)
    }
  })

  it('sends some redeliveries together with the first, some later, some changed, some after the end', () => {
    const roles = new Set(all(3, 60).map(({ role }) => role))
    expect(roles).toEqual(new Set(['first', 'together', 'soon', 'changed', 'settled']))
  })

  it('changes the body of a conflict and of nothing else', () => {
    const requests = all(3, 520)
    const bodies = new Map(requests.filter(({ role }) => role === 'first').map((one) => [one.deliveryId, one.body]))
    for (const { deliveryId, role, body } of requests) expect(body === bodies.get(deliveryId)).toBe(role !== 'changed')
    const changed = requests.filter(({ role }) => role === 'changed').map(({ deliveryId }) => deliveryId)
    expect(new Set(changed).size).toBe(changed.length)
  })

  it('is a function of the seed', () => {
    expect(plan(5, 60)).toEqual(plan(5, 60))
    expect(all(5, 60).map(({ deliveryId }) => deliveryId)).not.toEqual(all(6, 60).map(({ deliveryId }) => deliveryId))
  })

  it('asks the same amount for the same delivery', () => {
    expect(amountOf('d1')).toBe(amountOf('d1'))
    expect(amountOf('d1')).toBeGreaterThan(0)
  })
})
