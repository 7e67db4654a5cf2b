/**
 * The built page. What is served is what was found in its folder when it was first asked for: a request picks from that
 * list and never names a file.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface Asset {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly contentType: string
  /** The name holds a hash of the content: it never changes. */
  readonly isImmutable: boolean
  readonly etag: string
}

export interface Assets {
  /** undefined where the page is not built. */
  readonly index: Asset | undefined
  find(path: string): Asset | undefined
}

const contentTypes: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
  ico: 'image/x-icon',
  webp: 'image/webp',
  woff2: 'font/woff2',
  txt: 'text/plain; charset=utf-8',
  webmanifest: 'application/manifest+json',
}
const hashedName = /-[\w-]{8,}\.\w+$/

/**
 * `src/deck/assets` beside this file; `dist/deck/assets` of the package where this code is built, and found by the
 * package's name, because nobody knows into which file it was built.
 */
function folderOfAssets(): string {
  const here = import.meta.url
  if (here.endsWith('.ts')) return fileURLToPath(new URL('./assets', here))
  const manifest = createRequire(here).resolve('chokaq/package.json')
  return join(manifest, '..', 'dist', 'deck', 'assets')
}

export function loadAssets(basePath: string, folder?: string): Assets {
  const files = new Map<string, Asset>()
  for (const path of filesBelow(folder)) {
    const contentType = contentTypes[path.slice(path.lastIndexOf('.') + 1)]
    // A source map or something else that the page does not load.
    if (contentType === undefined) continue
    const bytes = readFileSync(join(folder ?? folderOfAssets(), path))
    files.set(path, assetOf(path === 'index.html' ? withBase(bytes, basePath) : bytes, path, contentType))
  }
  const index = files.get('index.html')
  files.delete('index.html')
  return { index, find: (path) => files.get(path) }
}

function filesBelow(folder: string | undefined): readonly string[] {
  try {
    return readdirSync(folder ?? folderOfAssets(), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relativePath(join(entry.parentPath, entry.name), folder ?? folderOfAssets()))
  } catch {
    return []
  }
}

function relativePath(path: string, folder: string): string {
  return path.slice(folder.length + 1).replaceAll('\\', '/')
}

function assetOf(bytes: Uint8Array, path: string, contentType: string): Asset {
  return {
    bytes: new Uint8Array(bytes),
    contentType,
    isImmutable: hashedName.test(path),
    etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 27)}"`,
  }
}

/** The page finds everything from its base, wherever it is mounted. The path is a checked option: no markup is in it. */
function withBase(bytes: Uint8Array, basePath: string): Uint8Array {
  const html = new TextDecoder().decode(bytes)
  const base = `<base href="${basePath}/" />`
  const changed = /<base\b[^>]*>/i.test(html)
    ? html.replace(/<base\b[^>]*>/i, base)
    : html.replace(/<head\b[^>]*>/i, (head) => `${head}\n    ${base}`)
  return new TextEncoder().encode(changed)
}
