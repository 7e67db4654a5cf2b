// What surrounds the pages: signing in, live numbers and their loss, keys, colours, and where the Deck is mounted.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chromiumPath, startChromium, type TestBrowser } from './chromium.ts'
import { type DeckPlace, deckStorages } from './deck-places.ts'
import { seed, sync } from './seed-jobs.ts'
import { settled, shoot, visit } from './visit.ts'

const token = 'a-token-of-the-test'
const [storage] = deckStorages

describe.skipIf(chromiumPath === undefined)('around the pages of the Deck', () => {
  let browser: TestBrowser
  let place: DeckPlace

  beforeAll(async () => {
    place = await (storage ?? expect.unreachable()).open()
    await seed(place.chokaq)
    browser = await startChromium()
  })
  afterAll(async () => {
    await browser.close()
    await place.close()
  })

  it('asks for a token, lets in who has it, and out again', async () => {
    const locked = await (storage ?? expect.unreachable()).open({
      auth: { tokens: [{ token, actor: 'ann', role: 'viewer' }] },
    })
    const { page, go, complaints } = await visit(await browser.open(), locked.url)
    await go('/queues')
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await page.getByLabel('Token').fill('not the right token')
    await page.getByRole('button', { name: 'Open the Deck' }).click()
    await page.getByText('This token is not known.').waitFor()
    await shoot(page, 'sqlite', 'login')
    await page.getByLabel('Token').fill(token)
    await page.getByRole('button', { name: 'Open the Deck' }).click()
    await page.getByRole('heading', { name: 'Queues' }).waitFor()
    await page.getByText('ann', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await page.goto(`${locked.url}queues#token=${token}`)
    await page.reload()
    await page.getByRole('heading', { name: 'Queues' }).waitFor()
    expect(page.url()).toBe(`${locked.url}queues`)
    expect(complaints).toEqual([])
    await page.context().close()
    await locked.close()
  })

  it('says why a viewer cannot act', async () => {
    const readOnly = await (storage ?? expect.unreachable()).open({ readOnly: true })
    await seed(readOnly.chokaq)
    const { page, go } = await visit(await browser.open(), readOnly.url)
    await go('/queues')
    const pause = page.getByRole('button', { name: 'Pause' }).first()
    await pause.focus()
    await page.getByRole('tooltip').filter({ visible: true }).getByText('Your role is viewer').waitFor()
    await pause.click({ force: true })
    expect(await page.getByRole('dialog').count()).toBe(0)
    await page.context().close()
    await readOnly.close()
  })

  it('shows live numbers, says when they are old, and comes back', async () => {
    const { page, go } = await visit(await browser.open(), place.url)
    await go('/')
    const mark = page.getByRole('complementary').locator('.live-mark')
    await mark.getByText('live').waitFor()
    const waiting = page.getByRole('link', { name: /^Waiting/ })
    await waiting.getByText('3', { exact: true }).waitFor()
    await place.chokaq.enqueue(sync, { shop: 'd' }, { queue: 'imports' })
    await waiting.getByText('4', { exact: true }).waitFor()
    await place.stop()
    await page.getByRole('alert').getByText('Stale.').waitFor()
    await mark.getByText('stale').waitFor()
    await waiting.getByText('4', { exact: true }).waitFor()
    await shoot(page, 'sqlite', 'stale')
    await place.start()
    await mark.getByText('live').waitFor()
    await page.getByText('Stale.').waitFor({ state: 'detached' })
    await page.context().close()
  })

  it('is walked by keys', async () => {
    const { page, go, complaints } = await visit(await browser.open(), place.url)
    await go('/')
    await page.keyboard.press('g')
    await page.keyboard.press('r')
    await page.getByRole('heading', { name: 'Review' }).waitFor()
    await page.getByRole('listitem').filter({ hasText: 'doubt-1' }).waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.keyboard.press('k')
    await page.keyboard.press('j')
    const second = page.getByRole('listitem').nth(1).getByRole('link').first()
    await second.and(page.locator(':focus')).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Decide' }).waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('j')
    await page.waitForURL(/\/jobs\/hot$/)
    await page.keyboard.press('/')
    await page.keyboard.type('stock')
    await page.keyboard.press('Escape')
    await page.waitForURL(/type=stock/)
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(complaints).toEqual([])
    await page.context().close()
  })

  it('keeps the colours that were chosen', async () => {
    const { page, go } = await visit(await browser.open({ colorScheme: 'light' }), place.url)
    await go('/')
    const ground = () => page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor')
    const light = await ground()
    await page.getByRole('radio', { name: 'Dark' }).click()
    const dark = await ground()
    expect(dark).not.toBe(light)
    await page.reload()
    await settled(page)
    expect(await ground()).toBe(dark)
    await page.context().close()
  })

  it('works below a path', async () => {
    const below = await (storage ?? expect.unreachable()).open({ basePath: '/ops/deck' })
    await seed(below.chokaq)
    const { page, go, complaints } = await visit(await browser.open(), `${below.url}ops/deck/`)
    await go('/review')
    await page.getByRole('link', { name: 'Jobs' }).click()
    await page.waitForURL(/\/ops\/deck\/jobs\/hot$/)
    await page
      .getByRole('row', { name: /stock.sync.v1/ })
      .first()
      .getByRole('link')
      .click()
    await page.getByText('Enqueued into').waitFor()
    await page.reload()
    await page.getByText('Enqueued into').waitFor()
    expect(complaints).toEqual([])
    await page.context().close()
    await below.close()
  })
})
