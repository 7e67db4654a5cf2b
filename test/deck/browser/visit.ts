// A page of the Deck under watch: whatever it complains about or runs against its policy is kept.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BrowserContext, Page } from 'playwright-core'

export interface Visit {
  readonly page: Page
  /** Errors of scripts, complaints in the console and reports against the content security policy. */
  readonly complaints: readonly string[]
  go(path: string): Promise<void>
}

/** What the browser says about an answer that a test asked for: a refusal is no complaint. */
const expected = /Failed to load resource|net::ERR_/

/** Scripts for the browser are texts here: its types and those of Node.js do not go together in one program. */
const tellOfViolations = `document.addEventListener('securitypolicyviolation', (event) =>
  console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sample))`

export async function visit(context: BrowserContext, url: string): Promise<Visit> {
  const page = await context.newPage()
  page.setDefaultTimeout(45_000)
  const complaints: string[] = []
  page.on('console', (message) => {
    const isBad = message.type() === 'error' || message.type() === 'warning'
    if (isBad && !expected.test(message.text())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('dialog', (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`)
    dialog.dismiss().catch(() => undefined)
  })
  await page.addInitScript(tellOfViolations)
  return {
    page,
    complaints,
    async go(path) {
      await page.goto(url + path.replace(/^\//, ''))
      await settled(page)
    },
  }
}

/** The page is there and nothing of it is still loading. */
export async function settled(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.locator('.skeleton').first().waitFor({ state: 'detached' })
}

const shots = fileURLToPath(new URL('./screenshots', import.meta.url))

export async function shoot(page: Page, folder: string, name: string): Promise<void> {
  mkdirSync(join(shots, folder), { recursive: true })
  await page.screenshot({ path: join(shots, folder, `${name}.png`) })
}
