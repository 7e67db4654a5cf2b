/**
 * Where a request comes from, as far as that can be trusted. Nothing a client sends may make it look nearer than it is:
 * forwarding headers only ever take trust away.
 */
import { DeckRefusal } from './problem.ts'

const forwardingHeaders = [
  'forwarded',
  'via',
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-original-host',
  'x-original-url',
  'x-rewrite-url',
  'x-envoy-external-address',
  'x-envoy-internal',
  'x-appengine-user-ip',
  'x-azure-clientip',
  'cf-connecting-ip',
  'cf-ray',
  'fastly-client-ip',
  'fly-client-ip',
  'true-client-ip',
] as const

/** A proxy stands in between: who is behind it is unknown. */
export function isForwarded(headers: Headers): boolean {
  for (const [name] of headers) if (name.startsWith('x-forwarded')) return true
  return forwardingHeaders.some((name) => headers.has(name))
}

export function isLoopbackAddress(address: string | undefined): boolean {
  if (address === undefined) return false
  const plain = address.toLowerCase().replace(/^::ffff:/, '')
  return plain === '::1' || /^127(\.\d{1,3}){3}$/.test(plain)
}

interface Host {
  readonly name: string
  /** '' where none is said. */
  readonly port: string
}

function parseHost(text: string): Host | undefined {
  const match = /^(\[[\da-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?$/i.exec(text)
  return match === null ? undefined : { name: (match[1] ?? '').toLowerCase(), port: match[2] ?? '' }
}

function isLoopbackName({ name }: Host): boolean {
  return name === 'localhost' || name === '[::1]' || /^127(\.\d{1,3}){3}$/.test(name)
}

/** Every host a request names: the header, and the one in its address where they differ. */
function hostsOf(request: Request): readonly string[] {
  const header = request.headers.get('host')
  const { host } = new URL(request.url)
  return header === null || header.toLowerCase() === host ? [host] : [header, host]
}

/** A page of somebody else could otherwise point its own name at this machine and read the Deck (DNS rebinding). */
export function checkHost(request: Request, allowedHosts: readonly string[]): void {
  for (const text of hostsOf(request)) {
    const host = parseHost(text)
    const isAllowed =
      host !== undefined &&
      (isLoopbackName(host) ||
        allowedHosts.some((allowed) => {
          const wanted = parseHost(allowed)
          return wanted?.name === host.name && (wanted.port === '' || wanted.port === host.port)
        }))
    if (isAllowed) continue
    throw new DeckRefusal(
      403,
      'host-not-allowed',
      'The Deck is not served under this host name. Add it to allowedHosts of createDeck (chokaq deck --allow-host).',
    )
  }
}

export function isLoopbackHost(request: Request): boolean {
  return hostsOf(request).every((text) => {
    const host = parseHost(text)
    return host !== undefined && isLoopbackName(host)
  })
}

/** Data is for the Deck's own page only; what a link in a chat opens is the page, not its data. */
export function refuseForeignRead(request: Request): void {
  const site = request.headers.get('sec-fetch-site')
  if (site === null || site === 'same-origin' || site === 'none') return
  throw crossSite()
}

/** A change comes from the Deck's own page: the browser says so in one of two headers, and neither says otherwise. */
export function refuseForeignChange(request: Request): void {
  const site = request.headers.get('sec-fetch-site')
  const origin = request.headers.get('origin')
  if (site !== null && site !== 'same-origin' && site !== 'none') throw crossSite()
  if (origin !== null && !isOwnOrigin(origin, request)) throw crossSite()
  if (site === null && origin === null) throw crossSite()
}

function isOwnOrigin(origin: string, request: Request): boolean {
  const own = request.headers.get('host') ?? new URL(request.url).host
  try {
    const { host, protocol } = new URL(origin)
    return host === own.toLowerCase() && (protocol === 'http:' || protocol === 'https:')
  } catch {
    return false // 'null' of a sandboxed page
  }
}

function crossSite(): DeckRefusal {
  const title =
    "This request does not come from the Deck's own page. Scripts send the header Origin with the Deck's origin."
  return new DeckRefusal(403, 'cross-site', title)
}
