// A Deck over a fresh storage on virtual time, and requests to it as a browser or a script sends them.
import { createDeck, type Deck, type DeckOptions } from 'chokaq/deck'
import type { ChokaQ } from 'chokaq'
import { afterEach } from 'vitest'
import type { StorageCase } from '../engine/storage-case.ts'
import { worlds, type World } from '../engine/world.ts'

export const tokens = [
  { token: 'viewer-token-0123456789', actor: 'vera', role: 'viewer' },
  { token: 'operator-token-0123456789', actor: 'otto', role: 'operator' },
  { token: 'admin-token-0123456789', actor: 'ada', role: 'admin' },
] as const

export type RoleName = (typeof tokens)[number]['role']

export function tokenOf(role: RoleName): string {
  return tokens.find((each) => each.role === role)?.token ?? ''
}

export const origin = 'http://localhost:4680'

export interface Asked {
  readonly method?: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly remoteAddress?: string
  readonly role?: RoleName
}

export class DeckScene {
  readonly world: World
  readonly deck: Deck
  readonly errors: unknown[] = []

  constructor(world: World, options: Partial<DeckOptions>) {
    this.world = world
    this.deck = createDeck({ chokaq: world.chokaq, onError: (error) => this.errors.push(error), ...options })
  }

  get chokaq(): ChokaQ {
    return this.world.chokaq
  }

  /** As the page does it: same origin, JSON. */
  ask(path: string, { method, body, headers = {}, remoteAddress = '127.0.0.1', role }: Asked = {}): Promise<Response> {
    const isChange = body !== undefined || method === 'POST'
    const request = new Request(`${origin}/${path}`, {
      method: method ?? (isChange ? 'POST' : 'GET'),
      headers: {
        host: 'localhost:4680',
        ...(isChange ? { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin', origin } : {}),
        ...(role === undefined ? {} : { authorization: `Bearer ${tokenOf(role)}` }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    return this.deck(request, { remoteAddress })
  }

  /** The answer's value; throws where it is no success. */
  async get<T>(path: string, asked: Asked = {}): Promise<T> {
    const response = await this.ask(path, asked)
    const text = await response.text()
    if (response.status !== 200) throw new TypeError(`${path} answered ${response.status}: ${text}`)
    return JSON.parse(text) as T
  }

  post<T>(path: string, body: unknown, asked: Asked = {}): Promise<T> {
    return this.get<T>(path, { ...asked, body })
  }

  /** `status code` of a refusal, such as '403 role-too-low'. */
  async refusal(path: string, asked: Asked = {}): Promise<string> {
    const response = await this.ask(path, asked)
    const { code } = (await response.json()) as { readonly code?: string }
    return `${response.status} ${code ?? ''}`
  }
}

/** Decks of one storage; each is closed before its world. */
export function decks(kind: StorageCase): (options?: Partial<DeckOptions>) => DeckScene {
  const open = worlds(kind)
  let opened: DeckScene[] = []
  afterEach(async () => {
    const all = opened
    opened = []
    for (const { deck } of all) await deck.close()
  })
  return (options = {}) => {
    const scene = new DeckScene(open(), options)
    opened.push(scene)
    return scene
  }
}
