import { describe, expect, test } from 'vitest'
import { EventBus, eventNames, type ChokaQEvent } from './events.ts'

const event: ChokaQEvent = { name: 'sweep.promoted', promotedCount: 1 }

describe('EventBus', () => {
  test('tells every listener, in the order in which they came', () => {
    const bus = new EventBus()
    const heard: string[] = []
    bus.subscribe(({ name }) => void heard.push(`a ${name}`))
    bus.subscribe(({ name }) => void heard.push(`b ${name}`))
    bus.emit(event)
    expect(heard).toEqual(['a sweep.promoted', 'b sweep.promoted'])
  })

  test('knows whether somebody listens', () => {
    const bus = new EventBus()
    expect(bus.active).toBe(false)
    const stop = bus.subscribe(() => undefined)
    expect(bus.active).toBe(true)
    stop()
    stop()
    expect(bus.active).toBe(false)
  })

  test('survives listeners that throw, reject, or leave while they are told', () => {
    const bus = new EventBus()
    const heard: string[] = []
    bus.subscribe(() => {
      throw new Error('no')
    })
    // A listener of JavaScript code may well be asynchronous.
    // eslint-disable-next-line @typescript-eslint/no-misused-promises
    bus.subscribe(async () => {
      throw new Error('later')
    })
    const stop = bus.subscribe(() => {
      heard.push('once')
      stop()
    })
    bus.subscribe(() => void heard.push('last'))
    bus.emit(event)
    bus.emit(event)
    expect(heard).toEqual(['once', 'last', 'last'])
  })
})

test('event names are words and dots', () => {
  for (const name of eventNames) expect(name).toMatch(/^[a-z]+(\.[a-z_]+)+$/)
})
