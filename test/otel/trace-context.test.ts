import { createTraceState, INVALID_SPAN_CONTEXT, type SpanContext } from '@opentelemetry/api'
import { describe, expect, it } from 'vitest'
import { formatContext, parseContext } from '../../src/otel/trace-context.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const spanId = '00f067aa0ba902b7'
const text = `00-${traceId}-${spanId}-01`

describe('the context of a job', () => {
  it('is a W3C traceparent, with its state behind it', () => {
    const context: SpanContext = { traceId, spanId, traceFlags: 1 }
    expect(formatContext(context)).toBe(text)
    const stated = formatContext({ ...context, traceState: createTraceState('vendor=1,other=2') })
    expect(stated).toBe(`${text} vendor=1,other=2`)
    expect(parseContext(stated)?.traceState?.get('other')).toBe('2')
    expect(parseContext(text)).toEqual({ ...context, isRemote: true })
  })

  it('loses a state that is too long, not itself', () => {
    const traceState = createTraceState(`a=${'x'.repeat(250)},b=${'x'.repeat(250)},c=${'x'.repeat(250)}`)
    expect(formatContext({ traceId, spanId, traceFlags: 1, traceState })).toBe(text)
  })

  it('is not written for a span that is none', () => {
    expect(formatContext(INVALID_SPAN_CONTEXT)).toBeUndefined()
  })

  it.each([
    undefined,
    '',
    'x',
    text.slice(1),
    `${text}0`,
    text.replace('4bf9', '4BF9'),
    `00-${'0'.repeat(32)}-${spanId}-01`,
  ])('is not read from %j', (value) => {
    expect(parseContext(value)).toBeUndefined()
  })
})
