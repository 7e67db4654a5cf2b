/**
 * Takes the pictures of the Deck in docs/images: the built page over the invented rows of deck-ui/dev.
 *
 *   npm run build:deck && node --conditions=chokaq-source --import jiti/register scripts/deck-images.ts
 */
import { mkdirSync, readFileSync, statSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type * as playwright from 'playwright-core'
import { jobs } from '../deck-ui/dev/mock-data.ts'
import { answerMock } from '../deck-ui/dev/mock-plugin.ts'

// Required: its CommonJS bundle is not loaded by import under the TypeScript loader.
const { chromium } = createRequire(import.meta.url)('playwright-core') as typeof playwright

const assets = fileURLToPath(new URL('../src/deck/assets', import.meta.url))
const images = fileURLToPath(new URL('../docs/images', import.meta.url))
const largestBytes = 200_000
const types: Readonly<Record<string, string>> = { js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' }

function answer(request: IncomingMessage, response: ServerResponse): void {
  answerMock(request, response, () => {
    const name = (request.url ?? '/').slice(1)
    const type = types[name.split('.').at(-1) ?? '']
    response.writeHead(200, { 'content-type': type ?? 'text/html; charset=utf-8' })
    response.end(readFileSync(join(assets, type === undefined ? 'index.html' : name)))
  })
}

const review = jobs.dlq[0]?.id ?? ''
const pictures = [
  { name: 'deck-overview', path: '/', colorScheme: 'light', seen: 'Throughput' },
  { name: 'deck-review', path: `/review/${review}`, colorScheme: 'light', seen: 'It happened' },
  { name: 'deck-job', path: `/jobs/${review}`, colorScheme: 'dark', seen: 'Enqueued' },
] as const

const server = createServer(answer)
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const { port } = server.address() as AddressInfo
const browser = await chromium.launch({
  executablePath: process.env['CHOKAQ_CHROMIUM'] ?? '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
})
mkdirSync(images, { recursive: true })
for (const { name, path, colorScheme, seen } of pictures) {
  const viewport = { width: 1280, height: 860 }
  const page = await browser.newPage({ viewport, colorScheme, reducedMotion: 'reduce' })
  await page.goto(`http://127.0.0.1:${port}${path}`)
  await page.locator('main').getByText(seen).first().waitFor()
  await page.locator('.side-bar .live-live').waitFor()
  const file = join(images, `${name}.png`)
  await page.screenshot({ path: file })
  const { size } = statSync(file)
  if (size > largestBytes) throw new RangeError(`${name}.png has ${size} bytes, more than ${largestBytes}`)
  await page.close()
}
await browser.close()
server.closeAllConnections()
server.close()
