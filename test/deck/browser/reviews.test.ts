// The heart: a person decides, with the evidence before them, and a second one is told.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chromiumPath, startChromium, type TestBrowser } from './chromium.ts'
import { type DeckPlace, deckStorages } from './deck-places.ts'
import { by, seed, work } from './seed-jobs.ts'
import { settled, shoot, visit, type Visit } from './visit.ts'

describe.skipIf(chromiumPath === undefined).each(deckStorages)('reviews in the Deck on $name', ({ name, open }) => {
  let browser: TestBrowser
  let place: DeckPlace
  let at: Visit
  let page: Page

  beforeAll(async () => {
    place = await open()
    await seed(place.chokaq)
    browser = await startChromium()
    at = await visit(await browser.open(), place.url)
    page = at.page
  })
  afterAll(async () => {
    await browser.close()
    await place.close()
  })

  const review = async (key: string): Promise<string> => {
    await at.go('/review')
    await page.getByRole('listitem').filter({ hasText: key }).getByRole('link', { name: 'Decide' }).click()
    await settled(page)
    await page.getByRole('heading', { name: 'Decide' }).waitFor()
    return page.url().split('/').at(-1) ?? ''
  }
  const choose = (decision: string) => page.locator(`input[type=radio][value=${decision}]`).check()
  const state = async (id: string) => (await place.chokaq.jobs.get(id))?.state

  it('shows the evidence first: the call, its input, and what nobody knows', async () => {
    await at.go('/review')
    await shoot(page, name, 'reviews')
    await review('doubt-1')
    await page.getByText('Nobody knows whether it happened.').waitFor()
    await page.getByText('Ask the provider').waitFor()
    await page.getByRole('region', { name: 'input of charge' }).waitFor()
    await page.locator('input[value=compensate]:disabled').waitFor()
    await shoot(page, name, 'review')
    expect(at.complaints).toEqual([])
  })

  it('adopts a result, and the handler goes on with it', async () => {
    const id = await review('doubt-1')
    await choose('adopt')
    await page.getByText('The result must be JSON').waitFor()
    await page.getByLabel('Result of the call, as JSON').fill('{ "id": "ch_found" }')
    await page.getByText('Write a note first.').waitFor()
    await page.getByLabel(/^Note/).fill('found in the bank statement')
    await page.getByRole('button', { name: 'Adopt the result' }).click()
    await page.getByRole('heading', { name: 'Resolved: adopted' }).waitFor()
    await work(place.chokaq)
    expect(await place.chokaq.jobs.get(id)).toMatchObject({ state: 'completed', result: '{"chargeId":"ch_found"}' })
  })

  it('gives one up', async () => {
    const id = await review('doubt-2')
    await choose('abandon')
    await page.getByLabel(/^Note/).fill('the customer withdrew')
    await page.getByRole('button', { name: 'Abandon it' }).click()
    await page.getByRole('heading', { name: 'Resolved: abandoned' }).waitFor()
    expect(await state(id)).toBe('cancelled')
  })

  it('lets one run again that certainly did not happen', async () => {
    const id = await review('jam-1')
    await choose('retry')
    await page.getByLabel(/^Note/).fill('the tray is empty')
    await page.getByRole('button', { name: 'Let it run again' }).click()
    await page.getByRole('heading', { name: 'Resolved: retried' }).waitFor()
    expect(await state(id)).toBe('pending')
  })

  it('has undone what happened, where nothing is in doubt', async () => {
    const id = await review('look-1')
    await page.getByText('The handler asked for a person.').waitFor()
    await choose('compensate')
    await page.getByLabel(/^Note/).fill('the amount was wrong')
    await page.getByRole('button', { name: 'Compensate' }).click()
    await page.getByRole('heading', { name: 'Resolved: compensated' }).waitFor()
    await work(place.chokaq)
    await page.getByRole('link', { name: 'See the job' }).click()
    await page.getByText('compensated: what happened was undone').waitFor()
    expect((await place.chokaq.jobs.get(id))?.pillar).toBe('archive')
  })

  it('says so where somebody else has decided before the page was read', async () => {
    const id = await review('doubt-4')
    await place.chokaq.reviews.adopt(id, { id: 'ch_4' }, { ...by, revision: await revisionOf(id) })
    await page.reload()
    await page.getByText('does not wait for a person').waitFor()
  })

  it('tells a second person whose decision stands', async () => {
    const id = await review('doubt-3')
    await choose('retry')
    await page.getByLabel(/^Note/).fill('nothing in the statement')
    await place.chokaq.reviews.abandon(id, { actor: 'ben', note: 'first', revision: await revisionOf(id) })
    await page.getByRole('button', { name: 'Let it run again' }).click()
    await page.getByRole('heading', { name: /Already resolved by ben as abandon/ }).waitFor()
    await page.getByText('Your decision did nothing.').waitFor()
    await shoot(page, name, 'conflict')
    expect(await state(id)).toBe('cancelled')
    expect(at.complaints).toEqual([])
  })

  async function revisionOf(id: string): Promise<number> {
    const found = (await place.chokaq.reviews.list()).find((one) => one.id === id)
    return found?.revision ?? 0
  }
})
