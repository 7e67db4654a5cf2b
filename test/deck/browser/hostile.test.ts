// Texts of users are texts: nothing of them runs, wherever they are shown.
import { defineJob, type JobRecord } from 'chokaq'
import { createWorker, defineHandler, FatalError, type Worker } from 'chokaq/worker'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { chromiumPath, startChromium, type TestBrowser } from './chromium.ts'
import { type DeckPlace, deckStorages } from './deck-places.ts'
import { hostileName, hostileText, hostileTexts, poisoned } from './hostile-texts.ts'
import { seed } from './seed-jobs.ts'
import { settled, shoot, visit, type Visit } from './visit.ts'

const hostile = defineJob({
  type: 'hostile.v1',
  queue: hostileName,
  payload: z.record(z.string(), z.string()),
  key: (p) => p['key'] ?? '',
  duplicateWindow: '1d',
})
const handler = defineHandler(hostile, {
  sideEffects: 'unguarded',
  whenInterrupted: 'review',
  async run(p) {
    const stack = `${hostileName}: ${hostileText}\n    at ${hostileText}`
    throw Object.assign(new FatalError(p['text'] ?? ''), { name: hostileName, stack })
  },
})

const paths = ['/', '/review', '/queues', '/jobs/hot', '/jobs/archive', '/jobs/dlq', '/workers', '/checklist', '/audit']

describe.skipIf(chromiumPath === undefined).each(deckStorages)(
  'hostile texts in the Deck on $name',
  ({ name, open }) => {
    let browser: TestBrowser
    let place: DeckPlace
    let at: Visit
    let page: Page
    let worker: Worker
    let dead: readonly JobRecord[]

    beforeAll(async () => {
      place = await open()
      await seed(place.chokaq)
      for (const text of [...hostileTexts, hostileText]) {
        const payload = { [text]: text, text, key: text }
        await place.chokaq.enqueue(hostile, payload, { tags: [hostileName.slice(0, 60)] })
      }
      worker = createWorker({ chokaq: place.chokaq, handlers: [handler], name: hostileName })
      while ((await worker.tick()) > 0);
      await worker.start()
      await place.chokaq.queues.pause(hostileName, { actor: hostileName, note: hostileText })
      dead = (await place.chokaq.jobs.list('dlq', { type: hostile.type })).jobs
      browser = await startChromium()
      at = await visit(await browser.open(), place.url)
      page = at.page
      await page.addInitScript('globalThis.fired = (n) => console.error(`fired ${n}`)')
    })
    afterAll(async () => {
      await browser.close()
      await worker.stop()
      await place.close()
    })

    /** Looks at the page with everything in it open, and hovers over what might wait for that. */
    const lookAround = async () => {
      await page.evaluate('for (const details of document.querySelectorAll("details")) details.open = true')
      await page
        .locator('main bdi')
        .first()
        .hover({ force: true, timeout: 2_000 })
        .catch(() => undefined)
    }
    /** Of the newest job whose key begins so: of the first text, the one with all of them. */
    const idOf = (start: string) => dead.find(({ keyPrefix }) => keyPrefix?.startsWith(start))?.id ?? ''
    const markup = () =>
      page.locator('main :is(script, iframe, img, object, embed, b[onmouseover], a[href^="javascript"])')

    it('shows stored ones as texts', async () => {
      expect(dead).toHaveLength(hostileTexts.length + 1)
      const some = [`/queues/${encodeURIComponent(hostileName)}`, `/jobs/dlq?queue=${encodeURIComponent(hostileName)}`]
      const all = idOf(hostileTexts[0] ?? '')
      const jobs = [`/jobs/${all}`, `/review/${all}`]
      for (const path of [...paths, ...some, ...jobs]) {
        await at.go(path)
        await lookAround()
        expect(await markup().count(), path).toBe(0)
      }
      expect(at.complaints).toEqual([])
    })

    it('makes visible what would turn the text around or hide in it', async () => {
      await at.go(`/jobs/${idOf(hostileTexts[0] ?? '')}`)
      const payload = page.getByRole('region', { name: 'payload' })
      await payload.locator('.unseen-sign', { hasText: 'U+202E' }).first().waitFor()
      expect(await page.title()).not.toContain('\u202E')
      expect(await page.locator('main').innerText()).not.toMatch(/[\u202A-\u202E\u2066-\u2069\u200B]/)
      await shoot(page, name, 'hostile')
    })

    it('shows them as texts wherever a server would put them', async () => {
      await page.route('**/api/**', async (route) => {
        if (route.request().url().endsWith('/events')) return route.continue()
        const response = await route.fetch()
        const body: unknown = await response.json()
        await route.fulfill({ response, json: poisoned(body) })
      })
      const id = idOf(hostileTexts[0] ?? '')
      const detail = [`/jobs/${id}`, `/jobs/${id}/edit`, `/review/${id}`]
      for (const path of [...paths, ...detail]) {
        await page.goto(place.url + path.slice(1))
        await settled(page)
        await page.locator('main').getByText('fired(1)').first().waitFor({ state: 'attached' })
        await lookAround()
        expect(await markup().count(), path).toBe(0)
      }
      // An answer under way when the page closes would fail with nobody to hear it.
      await page.unrouteAll({ behavior: 'wait' })
      expect(at.complaints).toEqual([])
    })
  },
)
