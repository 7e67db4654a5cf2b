// The style of this project, as far as a machine can hold it. Each rule is a function in test/tidy/ and is shown to
// fail in test/tidy-rules.test.ts. A rule here has no list of exceptions: change the code, or change the rule.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { bannedCalls } from './tidy/banned-calls.ts'
import { databaseNamesInLogic, sqlOutsideStorage } from './tidy/database-knowledge.ts'
import { importCycles } from './tidy/import-cycles.ts'
import { importDirections } from './tidy/import-directions.ts'
import { oneTitle } from './tidy/markdown.ts'
import { fileNames } from './tidy/names.ts'
import { fileLength, functionLength } from './tidy/sizes.ts'
import { sleepsInTests } from './tidy/sleeps.ts'
import { listFiles, readSources } from './tidy/source-file.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const sources = readSources(root, ['src', 'test', 'scripts', 'bench', 'examples', 'deck-ui'])

describe('layers', () => {
  it('imports only in the allowed directions', () => {
    expect(sources.flatMap(importDirections)).toEqual([])
  })

  it('has no import cycles', () => {
    expect(importCycles(sources)).toEqual([])
  })

  it('keeps SQL inside src/storage', () => {
    expect(sources.flatMap(sqlOutsideStorage)).toEqual([])
  })

  it('never asks which database it is in core and engine', () => {
    expect(sources.flatMap(databaseNamesInLogic)).toEqual([])
  })
})

describe('determinism and ownership', () => {
  it('makes no banned calls', () => {
    expect(sources.flatMap(bannedCalls)).toEqual([])
  })

  it('does not sleep in tests', () => {
    expect(sources.flatMap(sleepsInTests)).toEqual([])
  })
})

describe('sizes and names', () => {
  it('keeps files short', () => {
    expect(sources.flatMap(fileLength)).toEqual([])
  })

  it('keeps functions short', () => {
    expect(sources.flatMap(functionLength)).toEqual([])
  })

  it('names files in kebab-case after what they hold', () => {
    expect(sources.flatMap(({ path }) => fileNames(path))).toEqual([])
  })
})

describe('pages', () => {
  it('gives every Markdown page one title', () => {
    const pages = listFiles(root, ['.'], '.md')
    expect(pages.flatMap((path) => oneTitle(path, readFileSync(join(root, path), 'utf8')))).toEqual([])
  })

  // Lists that stand both in docs/ and in the code (error codes, events, options, counters, boot rules) are compared
  // in test/docs/lists-in-step.test.ts.
})
