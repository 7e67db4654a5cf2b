// What axe-core finds on each page, light and dark, wide and narrow.
import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chromiumPath, startChromium, type TestBrowser } from './chromium.ts'
import { type DeckPlace, deckStorages } from './deck-places.ts'
import { seed } from './seed-jobs.ts'
import { shoot, visit } from './visit.ts'

interface Finding {
  readonly id: string
  readonly impact: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
}

/** What keeps people out: serious and critical findings, each with the markup it is about. */
async function barriers(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate<{ readonly violations: readonly Finding[] }>('axe.run()')
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(
      ({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} (${failureSummary})`).join('\n')}`,
    )
}

const looks = [
  { colorScheme: 'light', width: 1280 },
  { colorScheme: 'dark', width: 1280 },
  { colorScheme: 'light', width: 360 },
] as const

/** How a page looks does not hang on the storage: one is enough. */
const [storage] = deckStorages

describe.skipIf(chromiumPath === undefined)('barriers in the Deck', () => {
  let browser: TestBrowser
  let place: DeckPlace
  let paths: readonly string[]

  beforeAll(async () => {
    place = await (storage ?? expect.unreachable()).open()
    await seed(place.chokaq)
    await place.chokaq.queues.pause('imports', { actor: 'ann', note: 'they asked' })
    const dead = (await place.chokaq.jobs.list('dlq', { type: 'image.resize.v1' })).jobs[0]?.id ?? ''
    const review = (await place.chokaq.reviews.list({ type: 'payment.capture.v1' }))[0]?.id ?? ''
    const lists = ['/', '/review', '/queues', '/queues/imports', '/jobs/hot', '/jobs/archive', '/jobs/dlq']
    paths = [...lists, '/workers', '/checklist', '/audit', `/jobs/${review}`, `/review/${review}`, `/jobs/${dead}/edit`]
    browser = await startChromium()
  })
  afterAll(async () => {
    await browser.close()
    await place.close()
  })

  it.each(looks)('has none in $colorScheme at $width pixels', async ({ colorScheme, width }) => {
    const context = await browser.open({ colorScheme, viewport: { width, height: 860 } })
    const { page, go, complaints } = await visit(context, place.url)
    const found: string[] = []
    for (const path of paths) {
      await go(path)
      found.push(...(await barriers(page)).map((one) => `${path} ${one}`))
      const overhang = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
      if (overhang > 0) found.push(`${path} is ${overhang} pixels wider than the window`)
      await shoot(page, `${colorScheme}-${width}`, path.replaceAll('/', '_').replace(/[0-9a-f-]{36}/, 'id'))
    }
    expect(found).toEqual([])
    expect(complaints).toEqual([])
    await context.close()
  })

  it('has none in a dialog, which keeps the focus inside and gives it back', async () => {
    const context = await browser.open()
    const { page, go } = await visit(context, place.url)
    await go('/jobs/dlq?type=image.resize.v1')
    const opener = page.getByRole('button', { name: 'Purge' })
    await opener.click()
    await page.getByText('Some of them:').waitFor()
    expect(await barriers(page)).toEqual([])
    // Past the last control the focus stands on a guard beside the dialog until the next frame brings it back inside.
    for (let step = 0; step < 12; step += 1) {
      await page.keyboard.press('Tab')
      await page.locator('[role="dialog"] :focus').waitFor({ state: 'attached' })
    }
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await opener.and(page.locator(':focus')).waitFor()
    await context.close()
  })
})
