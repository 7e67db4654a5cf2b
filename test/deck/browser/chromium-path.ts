// Where Chromium is, for those who only ask whether there is one.
import { existsSync } from 'node:fs'

const candidates = [
  process.env['CHOKAQ_CHROMIUM'],
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
]

export const chromiumPath = candidates.find((path) => path !== undefined && path !== '' && existsSync(path))

export const whySkipped =
  'The browser tests of the Deck are skipped: there is no Chromium (apt-get install chromium, or CHOKAQ_CHROMIUM=path).'
