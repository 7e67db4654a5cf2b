/**
 * The context that travels with a job, as W3C `traceparent`, and `tracestate` after a blank where there is one. Written
 * and read here and not by the propagator of the SDK: what stands in a table outlives a change of its configuration.
 */
import { createTraceState, isSpanContextValid, type SpanContext } from '@opentelemetry/api'

const maxStateChars = 512

export function formatContext(context: SpanContext): string | undefined {
  if (!isSpanContextValid(context)) return undefined
  const flags = (context.traceFlags & 0xff).toString(16).padStart(2, '0')
  const parent = `00-${context.traceId}-${context.spanId}-${flags}`
  const state = context.traceState?.serialize() ?? ''
  return state === '' || state.length > maxStateChars ? parent : `${parent} ${state}`
}

/** Undefined where it is no such text: a link to nowhere helps nobody. */
export function parseContext(text: string | undefined): SpanContext | undefined {
  const match = /^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?: (.{1,512}))?$/.exec(text ?? '')
  if (match === null) return undefined
  const [, traceId = '', spanId = '', flags = '', state] = match
  const context: SpanContext = {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
    ...(state === undefined ? {} : { traceState: createTraceState(state) }),
  }
  return isSpanContextValid(context) ? context : undefined
}
