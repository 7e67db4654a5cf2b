import { defineConfig } from 'tsdown'
import { sourceEntries } from './package-entries.ts'

export default defineConfig({
  entry: {
    ...Object.fromEntries(sourceEntries().map(({ output, source }) => [output, source])),
    'cli/bin': './src/cli/bin.ts',
    // Started by its path, from reader.ts.
    'storage/sqlite/reader-thread': './src/storage/sqlite/reader-thread.ts',
  },
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  fixedExtension: false,
  dts: true,
  sourcemap: true,
  clean: true,
  outDir: 'dist',
  // The Deck's page, which `npm run build:deck` made.
  copy: [{ from: 'src/deck/assets', to: 'dist/deck' }],
})
