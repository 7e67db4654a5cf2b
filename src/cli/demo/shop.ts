/** Where the shop keeps its jobs and its orders: a file of this run, or a schema of this run on a server. */
import type { Storage } from '../../core/storage.ts'
import { postgres } from '../../storage/postgres/index.ts'
import { sqlite } from '../../storage/sqlite/index.ts'
import { CliError } from '../cli-error.ts'
import { type Orders, OrdersInFile, OrdersOnServer } from './orders.ts'

export type ShopPlace =
  | { readonly kind: 'file'; readonly path: string }
  /** The URL may hold a password: it goes to other processes by their environment, never by their arguments. */
  | { readonly kind: 'server'; readonly url: string; readonly schema: string }

export const shopVariable = 'CHOKAQ_DEMO_DATABASE_URL'

/** How a place is told to another process, without its URL. */
export type ShopSetup = { readonly path: string } | { readonly schema: string }

export function setupOf(place: ShopPlace): ShopSetup {
  return place.kind === 'file' ? { path: place.path } : { schema: place.schema }
}

export function placeOf(setup: ShopSetup, env: Readonly<Record<string, string | undefined>>): ShopPlace {
  if ('path' in setup) return { kind: 'file', path: setup.path }
  return { kind: 'server', url: env[shopVariable] ?? '', schema: setup.schema }
}

/** From `--db`. Without it the run makes a file of its own. */
export function serverPlace(db: string, suffix: string): ShopPlace {
  if (!/^postgres(ql)?:/i.test(db)) {
    const text =
      'The demo makes a SQLite file by itself. Leave --db out, or name a server: --db postgres://host/database.'
    throw new CliError('CHOKAQ_CLI_USAGE', text)
  }
  return { kind: 'server', url: db, schema: `chokaq_demo_${suffix}` }
}

export function storageAt(place: ShopPlace): Storage {
  return place.kind === 'file' ? sqlite(place.path) : postgres(place.url, { schema: place.schema })
}

export function ordersAt(place: ShopPlace): Orders {
  return place.kind === 'file' ? new OrdersInFile(place.path) : new OrdersOnServer(place.url, place.schema)
}

/** What a run left on a server; a file goes with its folder. */
export async function removeShop(place: ShopPlace): Promise<void> {
  if (place.kind === 'file') return
  const orders = new OrdersOnServer(place.url, place.schema)
  await orders.dropSchema()
  await orders.close()
}
