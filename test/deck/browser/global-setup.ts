// Before any test: the Deck's page is built, and it is said what will not be tested without a browser.
import { ensureAssets } from './asset-build.ts'
import { chromiumPath, whySkipped } from './chromium-path.ts'

export default function setup(): void {
  ensureAssets()
  if (chromiumPath === undefined) process.stderr.write(`${whySkipped}\n`)
}
