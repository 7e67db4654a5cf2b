import { readdirSync, readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const folder = new URL('src/deck/assets/', `file://${root}`)
const scripts = readdirSync(folder).filter((name) => name.endsWith('.js'))

it('builds the page for users: no debug build, no path of the machine that built it, and small', () => {
  expect(scripts).not.toEqual([])
  const texts = scripts.map((name) => readFileSync(new URL(name, folder), 'utf8'))
  for (const text of texts) {
    expect(text).not.toContain('jsxDEV')
    expect(text).not.toContain(root)
  }
  const gzipped = texts.reduce((sum, text) => sum + gzipSync(text).byteLength, 0)
  expect(gzipped).toBeLessThan(200_000)
})
