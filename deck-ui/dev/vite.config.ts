// Builds the Deck's pages into src/deck/assets, from where the server of the Deck reads them; in development serves them
// with a mock of that server, so that no database is needed.
import { fileURLToPath } from 'node:url'
import type { ConfigEnv, UserConfig } from 'vite'
import { mockDeck } from './mock-plugin.ts'

const config: UserConfig = {
  root: fileURLToPath(new URL('..', import.meta.url)),
  // Addresses in index.html stay relative to its <base href>, which the server sets to where the Deck is mounted.
  base: './',
  plugins: [mockDeck()],
  build: {
    outDir: fileURLToPath(new URL('../../src/deck/assets', import.meta.url)),
    emptyOutDir: true,
    assetsDir: '',
    target: ['chrome123', 'firefox121', 'safari17.5'],
    // The polyfill would be an inline script, which the content security policy forbids.
    modulePreload: { polyfill: false },
    // Images and fonts as data: addresses would need an exception in the policy.
    assetsInlineLimit: 0,
    // One file: the page is opened once and stays.
    chunkSizeWarningLimit: 700,
    rolldownOptions: {
      // Marks for servers that render React; here all runs in the browser.
      onLog: (level, log, hear) => (log.code === 'MODULE_LEVEL_DIRECTIVE' ? undefined : hear(level, log)),
    },
  },
  server: { host: '127.0.0.1' },
}

/** A build is what users get: a NODE_ENV of whoever starts it, such as a test runner's, must not make it a debug build. */
function configFor({ command }: ConfigEnv): UserConfig {
  if (command === 'build') process.env.NODE_ENV = 'production'
  return config
}

// Vite asks for a default export here.
export { configFor as default }
