// Debian's Chromium, started once per test file. Without one, the tests say so and are skipped.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BrowserContext, type BrowserContextOptions, chromium } from 'playwright-core'
import { vi } from 'vitest'
import { chromiumPath, whySkipped } from './chromium-path.ts'

export { chromiumPath }

const flags = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

// A browser draws with the processor here, and shares it with whatever else runs.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 90_000 })

export interface TestBrowser {
  /** A window with nothing stored in it. */
  open(options?: BrowserContextOptions): Promise<BrowserContext>
  close(): Promise<void>
}

export async function startChromium(): Promise<TestBrowser> {
  if (chromiumPath === undefined) throw new Error(whySkipped)
  const profile = mkdtempSync(join(tmpdir(), 'chokaq-chromium-'))
  const first = await chromium.launchPersistentContext(profile, {
    executablePath: chromiumPath,
    args: flags,
    chromiumSandbox: false,
  })
  const browser = first.browser()
  return {
    async open(options = {}) {
      if (browser === null) throw new Error('Chromium is gone')
      return browser.newContext({ viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce', ...options })
    },
    async close() {
      await first.close()
      await browser?.close()
      rmSync(profile, { recursive: true, force: true })
    },
  }
}
