// Type-aware lint for everything we write. Layout rules (import directions, sizes, banned calls, cycles) live in
// test/tidy.test.ts, formatting in Prettier; this file is about correctness only.
import js from '@eslint/js'
import { defineConfig } from 'eslint/config'
import reactHooks from 'eslint-plugin-react-hooks'
import tseslint from 'typescript-eslint'

const ours = [
  ...['src', 'test', 'scripts', 'bench', 'examples', 'deck-ui/dev'].map((folder) => `${folder}/**/*.ts`),
  'deck-ui/src/**/*.{ts,tsx}',
]

export default defineConfig(
  { ignores: ['**/node_modules/', '**/dist/', '**/coverage/', '**/assets/', 'bench/peers/'] },
  js.configs.recommended,
  {
    files: [...ours, '*.ts'],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/only-throw-error': 'error',
      '@typescript-eslint/prefer-promise-reject-errors': 'error',
      '@typescript-eslint/return-await': ['error', 'in-try-catch'],
      '@typescript-eslint/no-unnecessary-condition': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      // The ports are asynchronous and some of their implementations (SQLite, test doubles) are not.
      '@typescript-eslint/require-await': 'off',
      // TypeScript knows the globals; this rule does not.
      'no-undef': 'off',
      eqeqeq: ['error', 'always'],
      'no-console': 'off', // held by test/tidy.test.ts (source) and test/fail-on-console.ts (tests)
    },
  },
  {
    files: ['deck-ui/src/**/*.{ts,tsx}'],
    extends: [reactHooks.configs.flat['recommended-latest']],
  },
  {
    files: ['test/**/*.ts', 'src/**/*.test.ts'],
    rules: {
      // `expect(port.method)` takes a method as a value on purpose.
      '@typescript-eslint/unbound-method': 'off',
    },
  },
  {
    files: ['**/*.js', '**/*.mjs'],
    languageOptions: { globals: { process: 'readonly', console: 'readonly', URL: 'readonly' } },
  },
)
