import { describe, expect, it } from 'vitest'
import { classifyError, statusOf, type Verdict } from './classify.ts'
import { EffectDeclined, FatalError, NotExecuted, RetryAfter } from './control-flow.ts'

const coded = (code: string, more: object = {}): Error => Object.assign(new Error(code), { code, ...more })
const wrapped = (cause: unknown): Error => new TypeError('fetch failed', { cause })

/** Throws whatever is asked of it. */
const hostile = new Proxy(new Error('hostile'), {
  get() {
    throw new Error('no')
  },
  getPrototypeOf() {
    throw new Error('no')
  },
})

const cyclic = new Error('a')
cyclic.cause = new Error('b', { cause: cyclic })
const cyclicRefused = coded('ECONNREFUSED')
cyclicRefused.cause = cyclicRefused

function chain(length: number, last: unknown): unknown {
  return length === 0 ? last : new Error(String(length), { cause: chain(length - 1, last) })
}

describe('classifyError', () => {
  it.each<[string, unknown, Verdict]>([
    ['a name that does not resolve', coded('ENOTFOUND', { syscall: 'getaddrinfo' }), 'not-executed'],
    ['a resolver that fails for now', coded('EAI_AGAIN'), 'not-executed'],
    ['a refused connection', coded('ECONNREFUSED', { syscall: 'connect' }), 'not-executed'],
    ['a host that cannot be reached', coded('EHOSTUNREACH', { syscall: 'connect' }), 'not-executed'],
    ['a host that is lost on an open connection', coded('EHOSTUNREACH', { syscall: 'read' }), 'ambiguous'],
    ['a connect timeout of undici', coded('UND_ERR_CONNECT_TIMEOUT'), 'not-executed'],
    ['a connect timeout of the system', coded('ETIMEDOUT', { syscall: 'connect' }), 'not-executed'],
    ['a timeout that does not say of what', coded('ETIMEDOUT'), 'ambiguous'],
    ['a certificate that has expired', coded('CERT_HAS_EXPIRED'), 'not-executed'],
    ['a reset', coded('ECONNRESET'), 'ambiguous'],
    ['a broken pipe', coded('EPIPE'), 'ambiguous'],
    ['a read timeout', coded('UND_ERR_BODY_TIMEOUT'), 'ambiguous'],
    ['an unknown code', coded('E_WEIRD'), 'ambiguous'],
    ['a code that is no text', coded('ok', { code: 7 }), 'ambiguous'],
    ['the network blip of fetch', wrapped(coded('ECONNRESET')), 'ambiguous'],
    ['a refusal inside fetch', wrapped(coded('ECONNREFUSED')), 'not-executed'],
    ['an HTML error page', new SyntaxError('Unexpected token <'), 'ambiguous'],
    ['a programming error', new TypeError('x is undefined'), 'ambiguous'],
    ['a fatal error', new FatalError('no'), 'ambiguous'],
    ['all addresses refused', new AggregateError([coded('ECONNREFUSED'), coded('ENETUNREACH')]), 'not-executed'],
    ['one of two addresses reset', new AggregateError([coded('ECONNREFUSED'), coded('ECONNRESET')]), 'ambiguous'],
    ['the same in the other order', new AggregateError([coded('ECONNRESET'), coded('ECONNREFUSED')]), 'ambiguous'],
    ['one of two that says nothing', new AggregateError([coded('ECONNREFUSED'), new Error('500')]), 'ambiguous'],
    ['a proof beside a reset', new AggregateError([new NotExecuted('a'), coded('ECONNRESET')]), 'ambiguous'],
    ['no addresses', new AggregateError([]), 'ambiguous'],
    ['an aggregate as a cause', wrapped(new AggregateError([coded('ECONNREFUSED')])), 'not-executed'],
    ['a reset behind a refusal', coded('ECONNREFUSED', { cause: coded('ECONNRESET') }), 'ambiguous'],
    ['what the effect proves', new NotExecuted('sold out'), 'not-executed'],
    ['what the effect proves, over a reset', new NotExecuted('x', { cause: coded('ECONNRESET') }), 'not-executed'],
    ['a proof as a cause', wrapped(new NotExecuted('sold out')), 'not-executed'],
    ['a wait that the effect asks for', new RetryAfter('5s'), 'not-executed'],
    ['a decline that the effect tells', new EffectDeclined('charge', 'declined'), 'terminal'],
    ['a cycle', cyclic, 'ambiguous'],
    ['a cycle of refusals', cyclicRefused, 'not-executed'],
    ['a chain within bounds', chain(20, coded('ECONNREFUSED')), 'not-executed'],
    ['a chain without end', chain(500, coded('ECONNREFUSED')), 'ambiguous'],
    ['a hundred errors side by side', new AggregateError(Array(100).fill(coded('ECONNREFUSED'))), 'ambiguous'],
    ['a proxy whose traps throw', hostile, 'ambiguous'],
    ['a hostile cause beside a refusal', coded('ECONNREFUSED', { cause: hostile }), 'not-executed'],
    ['a text', 'ECONNREFUSED', 'ambiguous'],
    ['nothing', undefined, 'ambiguous'],
    ['null', null, 'ambiguous'],
  ])('of %s is right', (_name, error, verdict) => {
    expect(classifyError(error)).toBe(verdict)
  })

  it("asks the provider first, and falls back on the engine's own rules", () => {
    expect(classifyError(coded('ECONNRESET'), () => 'terminal')).toBe('terminal')
    expect(classifyError(coded('ECONNREFUSED'), () => 'ambiguous')).toBe('ambiguous')
    expect(classifyError(coded('ECONNREFUSED'), () => undefined)).toBe('not-executed')
  })

  it('does not ask the provider about what the effect proved by type', () => {
    expect(classifyError(new NotExecuted('sold out'), () => 'ambiguous')).toBe('not-executed')
  })

  it('takes a provider that throws, or says something else, as one that proves nothing', () => {
    const throws = (): Verdict => {
      throw new Error('bug')
    }
    expect(classifyError(coded('ECONNRESET'), throws)).toBe('ambiguous')
    expect(classifyError(coded('ECONNREFUSED'), throws)).toBe('not-executed')
    expect(classifyError(coded('ECONNRESET'), () => 'done' as never)).toBe('ambiguous')
  })
})

describe('statusOf', () => {
  it.each<[string, unknown, number | undefined]>([
    ['statusCode', { statusCode: 402 }, 402],
    ['status', { status: 500 }, 500],
    ['httpStatus', { httpStatus: 429 }, 429],
    ['httpStatusCode', { httpStatusCode: 401 }, 401],
    ['response.status', { response: { status: 409 } }, 409],
    ['$metadata', { $metadata: { httpStatusCode: 400 } }, 400],
    ['a text', { status: '500' }, undefined],
    ['no object', 'boom', undefined],
    ['null', null, undefined],
    ['a response without one', { response: {}, $metadata: null }, undefined],
    ['a proxy whose traps throw', hostile, undefined],
  ])('reads %s', (_name, error, status) => {
    expect(statusOf(error)).toBe(status)
  })
})
