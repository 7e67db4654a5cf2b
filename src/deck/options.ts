/** What createDeck takes, checked once and frozen. */
import { whole } from '../core/config.ts'
import { contractOf, isJob, type Job } from '../core/contract.ts'
import { unknownKeyProblem } from '../core/did-you-mean.ts'
import { durationMs, type Duration } from '../core/duration.ts'
import { ChokaQError } from '../core/errors.ts'
import type { ChokaQ } from '../engine/enqueue/client.ts'
import { Redaction, type RedactFunction } from './redact.ts'
import { roles, type Role } from './wire.ts'

/** Who is at the screen: the actor stands in the audit log of all they do. */
export interface DeckIdentity {
  readonly actor: string
  readonly role: Role
}

export interface DeckToken extends DeckIdentity {
  /** At least 16 characters; make one with `openssl rand -base64 24`. */
  readonly token: string
}

/** Answers who sent the request; null where nobody may. What it throws is a no. */
export type AuthCallback = (request: Request) => DeckIdentity | null | Promise<DeckIdentity | null>

export interface DeckLimits {
  /** Largest body of a request, bytes. Defaults to 2,000,000. */
  maxBodyBytes?: number
  /** Requests of one actor in a minute. Defaults to 1,200. */
  requestsPerMinute?: number
  /** Failed logins from one address in a minute. Defaults to 10. */
  loginsPerMinute?: number
  /** Event streams open at once in this process. Defaults to 2,000. */
  maxEventStreams?: number
  /** How long the database may take for one answer. Defaults to 5 s. */
  queryDeadline?: Duration
}

export interface DeckOptions {
  /** What createChokaQ returned. */
  chokaq: ChokaQ
  /**
   * Who gets in, and as what. Without it only this machine does, directly and as admin: any forwarding header, foreign
   * host name or unknown address is refused.
   */
  auth?: AuthCallback | { readonly tokens: readonly DeckToken[] }
  /** Where it is mounted, such as '/deck'. Defaults to the root. */
  basePath?: string
  /** Host names it is reached by, such as 'deck.example.com' or 'deck.example.com:8443'. Loopback names always are. */
  allowedHosts?: readonly string[]
  /**
   * What of payloads, results and inputs nobody sees here: paths such as 'card.number', '*.email' (one level down) or
   * '**.email' (anywhere), or a function that returns a copy without it.
   */
  redact?: readonly string[] | RedactFunction
  /** Contracts whose payloads may be edited although they are keyed: the new key is computed from them. */
  jobs?: readonly Job[]
  /** Everybody is a viewer, whatever their role. */
  readOnly?: boolean
  /** Who acts where `auth` is left out. Defaults to 'local'. */
  localActor?: string
  limits?: DeckLimits
  /** Hears what the page is not told: errors of the storage and of your callbacks. */
  onError?: (error: unknown) => void
}

export type ResolvedAuth =
  | { readonly kind: 'loopback'; readonly actor: string }
  | { readonly kind: 'callback'; readonly call: AuthCallback }
  | { readonly kind: 'tokens'; readonly tokens: readonly DeckToken[] }

export interface DeckConfig {
  readonly chokaq: ChokaQ
  readonly auth: ResolvedAuth
  /** '' or '/deck': without a slash at its end. */
  readonly basePath: string
  readonly allowedHosts: readonly string[]
  readonly redaction: Redaction
  readonly jobs: ReadonlyMap<string, Job>
  readonly readOnly: boolean
  readonly maxBodyBytes: number
  readonly requestsPerMinute: number
  readonly loginsPerMinute: number
  readonly maxEventStreams: number
  readonly queryDeadlineMs: number
  readonly onError: (error: unknown) => void
}

const optionNames = [
  'chokaq',
  'auth',
  'basePath',
  'allowedHosts',
  'redact',
  'jobs',
  'readOnly',
  'localActor',
  'limits',
  'onError',
] as const satisfies readonly (keyof DeckOptions)[]
const limitNames = [
  'maxBodyBytes',
  'requestsPerMinute',
  'loginsPerMinute',
  'maxEventStreams',
  'queryDeadline',
] as const satisfies readonly (keyof DeckLimits)[]

const minTokenLength = 16
const maxActorLength = 128

/** @throws CHOKAQ_CONFIG_INVALID, CHOKAQ_OPTION_INVALID */
export function resolveDeckOptions(options: DeckOptions): DeckConfig {
  const limits = options.limits ?? {}
  refuseUnknown(options, optionNames, 'createDeck')
  refuseUnknown(limits, limitNames, 'createDeck({ limits })')
  const bounds = { minMs: 100, maxMs: 600_000 }
  return Object.freeze({
    chokaq: options.chokaq,
    auth: authOf(options),
    basePath: basePathOf(options.basePath ?? ''),
    allowedHosts: hostsOf(options.allowedHosts ?? []),
    redaction: new Redaction(options.redact ?? []),
    jobs: jobsOf(options.jobs ?? []),
    readOnly: options.readOnly === true,
    maxBodyBytes: whole(limits.maxBodyBytes, 'maxBodyBytes', 2_000_000, 1_000, 50_000_000),
    requestsPerMinute: whole(limits.requestsPerMinute, 'requestsPerMinute', 1_200, 1, 1_000_000),
    loginsPerMinute: whole(limits.loginsPerMinute, 'loginsPerMinute', 10, 1, 1_000),
    maxEventStreams: whole(limits.maxEventStreams, 'maxEventStreams', 2_000, 1, 100_000),
    queryDeadlineMs: durationMs(limits.queryDeadline ?? '5s', 'queryDeadline', bounds),
    onError: options.onError ?? (() => undefined),
  })
}

function refuseUnknown(input: object, known: readonly string[], what: string): void {
  const unknown = unknownKeyProblem(input, known, what)
  if (unknown !== undefined) misconfigured(unknown)
}

function misconfigured(problem: string): never {
  throw new ChokaQError('CHOKAQ_CONFIG_INVALID', { problem })
}

function authOf({ auth, localActor = 'local' }: DeckOptions): ResolvedAuth {
  if (auth === undefined) return { kind: 'loopback', actor: localActor }
  if (typeof auth === 'function') return { kind: 'callback', call: auth }
  const tokens: unknown = (auth as { readonly tokens?: unknown } | null)?.tokens
  // An empty list would let nobody in, and null (a missing variable) must not mean "no auth".
  if (!Array.isArray(tokens) || tokens.length === 0) {
    misconfigured('auth of createDeck must be a function or { tokens: [{ token, actor, role }] }.')
  }
  return { kind: 'tokens', tokens: tokens.map(tokenOf) }
}

function tokenOf(value: unknown): DeckToken {
  const { token } = (value ?? {}) as { readonly token?: unknown }
  // What a header can carry: another token would let nobody in.
  if (typeof token !== 'string' || token.length < minTokenLength || !/^[\x21-\x7e]+$/.test(token)) {
    misconfigured(
      `each token of createDeck needs at least ${minTokenLength} characters without blanks: openssl rand -base64 24`,
    )
  }
  const identity = identityOf(value)
  if (identity === undefined) {
    return misconfigured(`each token of createDeck needs an actor and a role (${roles.join(', ')}).`)
  }
  return { token, ...identity }
}

/** What a callback or a list said; undefined where it is no identity. */
export function identityOf(value: unknown): DeckIdentity | undefined {
  const { actor, role } = (value ?? {}) as { readonly actor?: unknown; readonly role?: unknown }
  const known = roles.find((each) => each === role)
  // eslint-disable-next-line no-control-regex -- control characters would forge lines of a log
  const isName = typeof actor === 'string' && /^[^\u0000-\u001f\u007f]+$/.test(actor) && actor.trim() !== ''
  if (known === undefined || !isName || actor.length > maxActorLength) return undefined
  return { actor, role: known }
}

function basePathOf(path: string): string {
  const text = path.replace(/\/+$/, '')
  if (text === '' || /^(\/[A-Za-z0-9._~-]+)+$/.test(text)) return text
  return misconfigured(`basePath of createDeck is ${JSON.stringify(path)}; expected a path such as '/deck'.`)
}

function hostsOf(hosts: readonly string[]): readonly string[] {
  return hosts.map((host) => {
    if (typeof host === 'string' && /^[a-z0-9.-]+(:\d{1,5})?$|^\[[\da-f:.]+\](:\d{1,5})?$/i.test(host)) {
      return host.toLowerCase()
    }
    return misconfigured(
      `allowedHosts of createDeck has ${JSON.stringify(host)}; expected names such as 'deck.example.com' or 'deck.example.com:8443'.`,
    )
  })
}

function jobsOf(jobs: readonly Job[]): ReadonlyMap<string, Job> {
  const byType = new Map<string, Job>()
  for (const job of jobs) {
    if (!isJob(job)) misconfigured('jobs of createDeck must be what defineJob returned.')
    byType.set(contractOf(job).type, job)
  }
  return byType
}
