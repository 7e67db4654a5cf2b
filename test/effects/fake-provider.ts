// A provider in memory: it acts, remembers keys if it takes any, and can be told to fail in all the ways providers do.
// What counts is `acts`: how often something happened in the world.
import { defineProvider, noKey, type CallOptions, type Found, type Provider } from 'chokaq/worker'

export interface Charge {
  readonly id: string
}

/** What happens to a call: the provider acts and its answer arrives, or one of these. */
export type Mishap =
  /** Before it acts. */
  | 'refuse'
  /** After it acted: the answer is lost. */
  | 'lose-answer'
  /** A 500 that is stored under the key. */
  | 'server-error'
  | 'decline'
  | 'none'

interface Act {
  readonly what: string
  readonly key: string
  readonly atMs: number
}

export const acme: Provider = defineProvider({
  name: 'acme',
  keyFormat: { maxLength: 64 },
  dedupeWindow: '24h',
  onProviderError: 'replayed',
  classify: (error) => ((error as { status?: unknown }).status === 402 ? 'terminal' : undefined),
})
export const keyless = noKey('post office')

export class FakeProvider {
  readonly acts: Act[] = []
  readonly calls: { readonly what: string; readonly key: string }[] = []
  /** Decides about each call. */
  mishap: (what: string) => Mishap = () => 'none'
  /** Runs after the provider acted, before its answer leaves: where a caller dies. */
  acted: (what: string) => void | Promise<void> = () => undefined
  readonly #takesKeys: boolean
  readonly #nowMs: () => number
  readonly #stored = new Map<string, { readonly charge: Charge } | { readonly error: Error }>()
  /** Reads lag this far behind. */
  lagMs = 0

  constructor(options: { readonly takesKeys: boolean; readonly nowMs: () => number }) {
    this.#takesKeys = options.takesKeys
    this.#nowMs = options.nowMs
  }

  async act(what: string, { idempotencyKey: key }: CallOptions): Promise<Charge> {
    this.calls.push({ what, key })
    const mishap = this.mishap(what)
    if (mishap === 'refuse') throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    if (mishap === 'decline') throw Object.assign(new Error('card declined'), { status: 402, code: 'card_declined' })
    const stored = this.#takesKeys ? this.#stored.get(key) : undefined
    if (stored !== undefined) {
      if ('error' in stored) throw stored.error
      return stored.charge
    }
    if (mishap === 'server-error') {
      const error = Object.assign(new Error('500 from acme'), { status: 500 })
      this.#stored.set(key, { error })
      throw error
    }
    const charge = { id: `ch_${this.acts.length + 1}` }
    this.acts.push({ what, key, atMs: this.#nowMs() })
    this.#stored.set(key, { charge })
    await this.acted(what)
    if (mishap === 'lose-answer') throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })
    return charge
  }

  /** What its read API shows now. */
  async look(what: string): Promise<Found<Charge>> {
    const at = this.acts.findIndex((act) => act.what === what && act.atMs + this.lagMs <= this.#nowMs())
    return at < 0 ? 'absent' : { present: { id: `ch_${at + 1}` } }
  }

  countOf(what: string): number {
    return this.acts.filter((act) => act.what === what).length
  }
}
