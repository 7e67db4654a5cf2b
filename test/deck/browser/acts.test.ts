// Every act of a person, from the click to the database and the audit log.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chromiumPath, startChromium, type TestBrowser } from './chromium.ts'
import { type DeckPlace, deckStorages } from './deck-places.ts'
import { deadCount, seed } from './seed-jobs.ts'
import { settled, shoot, visit, type Visit } from './visit.ts'

describe.skipIf(chromiumPath === undefined).each(deckStorages)('acts in the Deck on $name', ({ name, open }) => {
  let browser: TestBrowser
  let place: DeckPlace
  let at: Visit
  let page: Page

  beforeAll(async () => {
    place = await open()
    await seed(place.chokaq)
    browser = await startChromium()
    at = await visit(await browser.open({ acceptDownloads: true }), place.url)
    page = at.page
  })
  afterAll(async () => {
    await browser.close()
    await place.close()
  })

  const dialog = () => page.getByRole('dialog')
  const inDialog = (button: string | RegExp) => dialog().getByRole('button', { name: button }).click()
  const leaveDialog = async () => {
    await dialog().locator('.dialog-foot').getByRole('button', { name: 'Close' }).click()
    await dialog().waitFor({ state: 'detached' })
  }
  const note = (text: string) => dialog().getByLabel(/^Note/).fill(text)
  const audited = async (text: string | RegExp) => {
    await at.go('/audit')
    await page.getByRole('listitem').filter({ hasText: text }).first().waitFor()
  }
  const openDead = async (id: string) => {
    await at.go('/jobs/dlq?type=image.resize.v1')
    await page.getByRole('table', { name: 'Jobs' }).waitFor()
    await page
      .getByRole('row', { name: new RegExp(`cannot read ${id}\\b`) })
      .getByRole('link')
      .click()
    await settled(page)
  }

  it('pauses, resumes and limits a queue', async () => {
    await at.go('/queues')
    const row = page.getByRole('row', { name: /imports/ })
    await row.getByRole('button', { name: 'Pause' }).click()
    await note('partner asked for it')
    await inDialog('Pause')
    await row.getByText('paused').waitFor()
    await row.getByRole('button', { name: 'Resume' }).click()
    await inDialog('Resume')
    await row.getByRole('button', { name: 'Pause' }).waitFor()
    await row.getByRole('button', { name: 'Limit' }).click()
    await dialog()
      .getByLabel(/Most jobs at once/)
      .fill('0')
    await dialog().getByText('The limit is a whole number from 1, or empty.').waitFor()
    await dialog()
      .getByLabel(/Most jobs at once/)
      .fill('3')
    await inDialog('Set limit')
    await row.getByText('0 / 3').waitFor()
    await audited('partner asked for it')
    expect(at.complaints).toEqual([])
  })

  it('makes a scheduled job due, and cancels one', async () => {
    await at.go('/jobs/hot?state=scheduled')
    await page
      .getByRole('row', { name: /stock.sync.v1/ })
      .first()
      .getByRole('link')
      .click()
    await settled(page)
    await page.getByRole('button', { name: 'Retry now' }).click()
    await inDialog('Retry now')
    await page.getByText('pending', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await note('not needed any more')
    await inDialog('Cancel')
    await page.getByText('cancelled', { exact: true }).first().waitFor()
    await audited('not needed any more')
  })

  it('resurrects a dead job, and purges one after its id was typed', async () => {
    await openDead('bad-69')
    await page.getByRole('button', { name: 'Resurrect' }).click()
    await note('the picture is there now')
    await inDialog('Resurrect')
    await page.getByText('pending', { exact: true }).waitFor()
    await openDead('bad-68')
    const id = page.url().split('/').at(-1) ?? ''
    await page.getByRole('button', { name: 'Purge' }).click()
    await note('test data')
    await dialog().getByText('Type the confirmation first.').waitFor()
    await dialog().getByLabel(/^Type/).fill(id)
    await shoot(page, name, 'purge')
    await inDialog('Purge')
    await page.waitForURL(/\/jobs\/dlq$/)
    expect(await place.chokaq.jobs.get(id)).toBeUndefined()
    await audited('the picture is there now')
    expect(at.complaints).toEqual([])
  })

  it('edits a payload, with the place of what is no JSON and what the schema says', async () => {
    await openDead('bad-67')
    await page.getByRole('button', { name: 'Edit payload' }).click()
    await page.waitForURL(/\/edit$/)
    const id = page.url().split('/').at(-2) ?? ''
    const field = page.getByLabel('Payload', { exact: true })
    await field.fill('{\n  "id": "good",\n  "width" 5\n}')
    await page.getByText(/Line 3, column 11/).waitFor()
    await field.fill('{ "id": "good", "width": "wide" }')
    await page.locator('.field-error').filter({ hasText: 'width' }).waitFor()
    await page.getByText('The schema refuses it.').waitFor()
    await shoot(page, name, 'edit')
    await field.fill('{ "id": "good", "width": 5 }')
    await page.getByLabel(/^Note/).fill('a number was a text')
    await page.getByText('The schema accepts it.').waitFor()
    await page.getByRole('button', { name: 'Save and resurrect' }).click()
    await page.waitForURL(new RegExp(`${id}$`))
    const job = await place.chokaq.jobs.get(id)
    expect(job?.pillar).toBe('hot')
    expect(JSON.parse(job?.payload ?? '')).toEqual({ id: 'good', width: 5 })
    expect(at.complaints).toEqual([])
  })

  it('acts on the jobs that were picked', async () => {
    await at.go('/jobs/dlq?type=image.resize.v1')
    await page
      .getByLabel(/^Select job/)
      .nth(0)
      .check()
    await page
      .getByLabel(/^Select job/)
      .nth(1)
      .check()
    await page.getByText('2 selected').waitFor()
    await page.getByRole('button', { name: 'Resurrect' }).click()
    await note('both again')
    await inDialog('Resurrect 2')
    await dialog().getByText('2 jobs resurrected').waitFor()
    await leaveDialog()
  })

  it('acts on all that match: a look, a few first, then the rest', async () => {
    await at.go('/jobs/dlq?tag=import-7')
    const left = deadCount - 5
    await page.getByText(`${left} match`).waitFor()
    await page.getByRole('button', { name: 'Purge' }).click()
    await dialog().getByText('Some of them:').waitFor()
    await note('old import')
    await dialog().getByLabel(/^Type/).fill(`purge ${left}`)
    await shoot(page, name, 'bulk')
    await inDialog('Purge 10 first')
    await dialog().getByText(`10 jobs purged`).waitFor()
    await inDialog('Purge the rest')
    await dialog().getByText(`${left} jobs purged`).waitFor()
    await leaveDialog()
    await page.getByText('No job matches.').waitFor()
    await audited('old import')
    expect(at.complaints).toEqual([])
  })

  it('exports what matches', async () => {
    await at.go('/jobs/dlq?review=1')
    const coming = page.waitForEvent('download')
    await page.getByRole('button', { name: /Export as csv/ }).click()
    const file = await coming
    expect(file.suggestedFilename()).toBe('chokaq-dlq.csv')
    const chunks: Buffer[] = []
    for await (const chunk of await file.createReadStream()) chunks.push(chunk as Buffer)
    expect(Buffer.concat(chunks).toString('utf8').trim().split('\n')).toHaveLength(7)
  })
})
