import { describe, expect, it } from 'vitest'
import { createStreamReader } from './event-stream.ts'

describe('a stream reader', () => {
  it('gives the same events however the text is cut', () => {
    const text = 'retry: 3000\n\n: still here\n\nid: 1\ndata: {"a":1}\n\ndata: x\r\ndata: y\r\n\r\n'
    for (let size = 1; size <= text.length; size += 1) {
      const reader = createStreamReader()
      const events: string[] = []
      for (let from = 0; from < text.length; from += size) events.push(...reader.push(text.slice(from, from + size)))
      expect(events, `pieces of ${size}`).toEqual(['{"a":1}', 'x\ny'])
    }
  })
})
