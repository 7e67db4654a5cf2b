import { describe, expect, it } from 'vitest'
import type { ChokaQEvent } from '../core/events.ts'
import { eventJson, eventText, isForPeople } from './event-lines.ts'

const at = new Date(Date.UTC(2026, 0, 1))
const failure = { name: 'Error', message: 'no\nluck "today"' }
const dead: ChokaQEvent = {
  name: 'job.dead',
  jobId: 'j1',
  type: 'a.v1',
  queue: 'with blank',
  workerId: 'w1',
  attempt: 2,
  reason: 'FatalError',
  hold: false,
  failure,
}

describe('eventText', () => {
  it('is one line, with quotes where a value could pass for further fields', () => {
    expect(eventText(dead, at)).toBe(
      '2026-01-01T00:00:00.000Z job.dead jobId=j1 type=a.v1 queue="with blank" workerId=w1 attempt=2 reason=FatalError hold=false failure="Error: no luck \\"today\\""',
    )
    expect(eventText({ ...dead, queue: 'q reason=None' }, at)).toContain('queue="q reason=None"')
    expect(eventText({ ...dead, queue: 'a\n2026 job.completed' }, at).split('\n')).toHaveLength(1)
  })

  it('leaves out what is not there', () => {
    expect(eventText({ ...dead, failure: null }, at)).not.toContain('failure')
  })
})

describe('eventJson', () => {
  it('has the time and every field', () => {
    expect(JSON.parse(eventJson(dead, at))).toEqual({ at: '2026-01-01T00:00:00.000Z', ...dead })
  })
})

describe('isForPeople', () => {
  it('shows what needs a look, and the rest only when asked', () => {
    const done: ChokaQEvent = {
      name: 'job.completed',
      jobId: 'j',
      type: 't',
      queue: 'q',
      workerId: 'w',
      attempt: 1,
      durationMs: 1,
      repeated: false,
    }
    expect([isForPeople(dead, false), isForPeople(done, false), isForPeople(done, true)]).toEqual([true, false, true])
  })
})
