// Every page on both storages: what it must show, and that it goes along with its content security policy.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chromiumPath, startChromium, type TestBrowser } from './chromium.ts'
import { type DeckPlace, deckStorages } from './deck-places.ts'
import { deadCount, seed } from './seed-jobs.ts'
import { shoot, visit, type Visit } from './visit.ts'

describe.skipIf(chromiumPath === undefined).each(deckStorages)('pages of the Deck on $name', ({ name, open }) => {
  let browser: TestBrowser
  let place: DeckPlace
  let at: Visit

  beforeAll(async () => {
    place = await open()
    await seed(place.chokaq)
    browser = await startChromium()
    at = await visit(await browser.open(), place.url)
  })
  afterAll(async () => {
    await browser.close()
    await place.close()
  })

  const shown = (text: string | RegExp) => at.page.locator('main').getByText(text).first().waitFor()

  it('shows first what waits for a person', async () => {
    await at.go('/')
    await at.page.getByRole('heading', { name: '6 operations wait for a person' }).waitFor()
    await at.page.getByRole('link', { name: /imports has 3 jobs|3 jobs waiting/ }).waitFor()
    await at.page.getByRole('figure').filter({ hasText: 'Throughput' }).waitFor()
    await shoot(at.page, name, 'overview')
    await at.page.getByRole('radio', { name: '15m' }).click()
    await at.page.waitForURL(/range=15m/)
    await at.page.locator('figure details summary').first().click()
    await at.page.locator('figure table tbody tr').first().waitFor()
    expect(at.complaints).toEqual([])
  })

  it('lists queues, and one of them', async () => {
    await at.go('/queues')
    await at.page
      .getByRole('row', { name: /imports/ })
      .getByText('no worker')
      .waitFor()
    await shoot(at.page, name, 'queues')
    await at.page.getByRole('link', { name: 'imports' }).click()
    await at.page.getByRole('heading', { name: /imports/ }).waitFor()
    await shown('Queue lag')
    expect(at.complaints).toEqual([])
  })

  it('lists each pillar, and goes on where the list was cut', async () => {
    await at.go('/jobs/archive?state=completed')
    await at.page.getByRole('row', { name: /order-1/ }).waitFor()
    await at.go('/jobs/hot')
    await at.page
      .getByRole('row', { name: /stock.sync.v1/ })
      .first()
      .waitFor()
    await at.go('/jobs/dlq?type=image.resize.v1')
    await at.page.getByText(`${deadCount} match`).waitFor()
    await shoot(at.page, name, 'dlq')
    await at.page.keyboard.press('End')
    await at.page.getByText('That is all.').waitFor({ state: 'attached' })
    await at.page.keyboard.press('End')
    await at.page
      .getByRole('table', { name: 'Jobs' })
      .locator(`[aria-rowindex="${deadCount + 1}"]`)
      .waitFor()
    expect(at.complaints).toEqual([])
  })

  it('filters by what stands in the address, and puts it there', async () => {
    await at.go('/jobs/dlq')
    await at.page.getByLabel('Key starts with').fill('doubt-')
    await at.page.waitForURL(/key=doubt-/)
    await at.page.getByText('4 match').waitFor()
    await at.page.getByLabel('Reason').selectOption('FatalError')
    await shown('No job matches.')
    await at.page.getByRole('button', { name: 'Clear' }).click()
    await at.page.getByLabel('waits for a person').check()
    await at.page.getByText('6 match').waitFor()
    expect(new URL(at.page.url()).search).toBe('?review=1')
    expect(at.complaints).toEqual([])
  })

  it('tells the story of a job', async () => {
    await at.go('/jobs/dlq?key=doubt-1')
    await at.page
      .getByRole('row', { name: /doubt-1/ })
      .getByRole('link')
      .click()
    await at.page.getByRole('heading', { name: /payment.capture.v1/ }).waitFor()
    await shown('Enqueued')
    await shown('ended unknown')
    await shown('held until a person decides')
    await at.page.getByRole('region', { name: 'payload' }).getByText('"cents"').waitFor()
    const purge = at.page.getByRole('button', { name: 'Purge' })
    await purge.focus()
    await at.page
      .getByRole('tooltip')
      .filter({ visible: true })
      .getByText('It is in doubt: decide its review.')
      .waitFor()
    await shoot(at.page, name, 'job')
    expect(at.complaints).toEqual([])
  })

  it('shows checklist, workers and audit, and says where nothing is', async () => {
    await at.go('/checklist')
    await at.page
      .getByRole('row', { name: /letter.print.v1/ })
      .getByText('at most once + review')
      .waitFor()
    await shoot(at.page, name, 'checklist')
    await at.go('/workers')
    await shown(/No worker is known|seed-worker/)
    await at.go('/audit')
    await shown('seed')
    await at.go('/audit?subject=nobody')
    await shown('Nothing is recorded about it.')
    await at.go('/jobs/01890000-0000-7000-8000-000000000000')
    await at.page.getByRole('alert').waitFor()
    await at.go('/nowhere')
    await shown('Nothing is here.')
    expect(at.complaints).toEqual([])
  })
})
