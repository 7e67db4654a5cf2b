// The list behind `npm run proof:guards` speaks of the code as it is.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { guards } from '../../scripts/guards.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

test.each(guards)('the text of "$what" ($stands) stands exactly once in $file', ({ file, text, instead, tests }) => {
  expect(readFileSync(join(root, file), 'utf8').split(text)).toHaveLength(2)
  expect(instead).not.toBe(text)
  for (const name of Object.keys(tests)) expect(existsSync(join(root, name)), name).toBe(true)
})
