import { describe, expect, it } from 'vitest'
import { DeadWalk } from './dead-walk.ts'

function walk() {
  let nowMs = 0
  const look = new DeadWalk({ nowMs: () => nowMs, monotonicMs: () => nowMs })
  const taking = (ms: number) => look.take(() => Promise.resolve((nowMs += ms)))
  return { look, taking, pass: (ms: number) => void (nowMs += ms) }
}

describe('a look that reads past dead rows', () => {
  it('is taken each time while it is quick', async () => {
    const { look, taking } = walk()
    await taking(499)
    expect(look.isDue).toBe(true)
  })

  it('rests for twenty times as long after a slow one', async () => {
    const { look, taking, pass } = walk()
    await taking(1_000)
    pass(19_999)
    expect(look.isDue).toBe(false)
    pass(1)
    expect(look.isDue).toBe(true)
  })

  it('rests after one that failed late', async () => {
    const { look, pass } = walk()
    const failing = look.take(() => {
      pass(5_000)
      return Promise.reject(new Error('too slow'))
    })
    await expect(failing).rejects.toThrow('too slow')
    expect(look.isDue).toBe(false)
  })

  it('is not taken beside one that is under way', async () => {
    const { look } = walk()
    let end: () => void = () => undefined
    const first = look.take(() => new Promise<void>((resolve) => (end = resolve)))
    expect(look.isDue).toBe(false)
    end()
    await first
    expect(look.isDue).toBe(true)
  })
})
