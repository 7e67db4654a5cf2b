/** Who may come in. Everything is refused that is not let in by a rule here, static files included. */
import type { Runtime } from '../core/runtime.ts'
import type { RequestInfo } from '../http/node.ts'
import { Tokens } from './login.ts'
import { identityOf, type DeckConfig, type DeckIdentity } from './options.ts'
import { checkHost, isForwarded, isLoopbackAddress, isLoopbackHost } from './origin.ts'
import { DeckRefusal } from './problem.ts'
import { RateLimit } from './rate-limit.ts'
import { roles, type Role } from './wire.ts'

const howToLetIn =
  'The Deck lets in only this machine until it is told whom to trust. ' +
  'Give createDeck({ auth }) (chokaq deck --token), or open it on the machine itself, without a proxy.'

export class Gate {
  readonly #config: DeckConfig
  readonly #runtime: Runtime
  readonly #requests: RateLimit
  readonly #failedLogins: RateLimit
  readonly tokens: Tokens | undefined

  constructor(config: DeckConfig, runtime: Runtime) {
    this.#config = config
    this.#runtime = runtime
    this.#requests = new RateLimit(runtime.clock, config.requestsPerMinute)
    this.#failedLogins = new RateLimit(runtime.clock, config.loginsPerMinute)
    this.tokens = config.auth.kind === 'tokens' ? new Tokens(config.auth.tokens) : undefined
  }

  /** Refuses where a host name is not ours, before anything else is looked at. */
  checkHost(request: Request): void {
    checkHost(request, this.#config.allowedHosts)
  }

  /** Who it is, with what `readOnly` leaves of the role. */
  async enter(request: Request, info: RequestInfo): Promise<DeckIdentity> {
    const { actor, role } = await this.#identify(request, info)
    if (!this.#requests.take(actor)) {
      throw tooMany('requests', this.#requests.waitSeconds(actor))
    }
    return { actor, role: this.#config.readOnly ? 'viewer' : role }
  }

  async #identify(request: Request, info: RequestInfo): Promise<DeckIdentity> {
    const { auth } = this.#config
    switch (auth.kind) {
      case 'loopback': {
        const isLocal =
          isLoopbackAddress(info.remoteAddress) && isLoopbackHost(request) && !isForwarded(request.headers)
        if (!isLocal) throw new DeckRefusal(403, 'deny-by-default', howToLetIn)
        return { actor: auth.actor, role: 'admin' }
      }
      case 'callback':
        return this.#ask(auth.call, request)
      case 'tokens':
        return this.#byToken(request, info)
    }
  }

  async #ask(call: (request: Request) => unknown, request: Request): Promise<DeckIdentity> {
    let said: unknown
    try {
      // A copy, so that a callback that reads the body leaves it for the Deck.
      said = await call(request.clone())
    } catch (error) {
      this.#config.onError(error)
    }
    const identity = identityOf(said)
    if (identity !== undefined) return identity
    if (said !== null && said !== undefined) {
      this.#config.onError(
        new TypeError(`auth of createDeck must answer null or { actor, role: ${roles.join(' | ')} }`),
      )
    }
    throw new DeckRefusal(401, 'login-required', 'You are not signed in, or may not use the Deck.')
  }

  #byToken(request: Request, info: RequestInfo): DeckIdentity {
    const from = info.remoteAddress ?? 'unknown'
    this.#refuseGuessing(from)
    const found = this.tokens?.identify(request.headers, this.#runtime.clock.nowMs())
    if (found === 'wrong') {
      this.#failedLogins.take(from)
      throw new DeckRefusal(401, 'login-failed', 'This token is not known.', { 'www-authenticate': 'Bearer' })
    }
    if (found !== undefined) return found
    throw new DeckRefusal(401, 'login-required', 'Sign in with a token.', { 'www-authenticate': 'Bearer' })
  }

  /** The cookie for a token, for `POST api/login`. */
  logIn(token: string, info: RequestInfo, place: { readonly path: string; readonly isEncrypted: boolean }): string {
    const from = info.remoteAddress ?? 'unknown'
    this.#refuseGuessing(from)
    const found = this.tokens?.find(token)
    if (found === undefined || this.tokens === undefined) {
      this.#failedLogins.take(from)
      throw new DeckRefusal(401, 'login-failed', 'This token is not known.')
    }
    return this.tokens.cookieFor(found, this.#runtime.clock.nowMs(), place)
  }

  #refuseGuessing(from: string): void {
    if (!this.#failedLogins.allows(from)) throw tooMany('wrong tokens', this.#failedLogins.waitSeconds(from))
  }
}

function tooMany(what: string, seconds: number): DeckRefusal {
  return new DeckRefusal(429, 'too-many-requests', `Too many ${what}. Try again in ${seconds} s.`, {
    'retry-after': String(seconds),
  })
}

export function requireRole(has: Role, needs: Role): void {
  if (roles.indexOf(has) >= roles.indexOf(needs)) return
  throw new DeckRefusal(403, 'role-too-low', `This needs the role ${needs}; yours is ${has}.`)
}
