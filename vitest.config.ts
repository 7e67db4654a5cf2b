import { defineConfig } from 'vitest/config'
import { sourceEntries } from './package-entries.ts'

// Tests import the public names ('chokaq', 'chokaq/worker', …) and get src/ through the export condition
// `chokaq-source`, so no build is needed. A package that imports itself by name is not resolved by Vite,
// hence the aliases, which are read from the same exports map.
const alias = sourceEntries().map(({ specifier, source }) => ({
  find: new RegExp(`^${specifier}$`),
  replacement: new URL(source, import.meta.url).pathname,
}))

export default defineConfig({
  resolve: { alias, conditions: ['chokaq-source', 'node', 'import', 'default'] },
  // These become Node's own --conditions, for require() as well: with 'import' among them a CommonJS package would be
  // handed the ES module of its dependency (Express gets an is-promise that is no function).
  ssr: { resolve: { conditions: ['chokaq-source', 'node', 'default'] } },
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'deck-ui/src/**/*.test.ts'],
    globalSetup: ['test/postgres/global-setup.ts', 'test/deck/browser/global-setup.ts'],
    setupFiles: ['test/fail-on-console.ts'],
    pool: 'forks',
    // Two files at once even on two cores: much of the time goes into waiting for processes and databases. Not more, because
    // those are real, and their deadlines count.
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 30_000,
    teardownTimeout: 10_000,
    passWithNoTests: false,
  },
})
