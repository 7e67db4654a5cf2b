// Loaded before every test file. Output in a test is either noise or a warning nobody reads, so it fails the test,
// unless the test says beforehand that it expects it: `const lines = allowConsole('warn')`.
import { afterAll, afterEach, beforeEach } from 'vitest'

const methods = ['log', 'info', 'warn', 'error', 'debug', 'trace', 'dir', 'table'] as const
type ConsoleMethod = (typeof methods)[number]

interface Watch {
  unexpected: string[]
  readonly allowed: Map<ConsoleMethod, string[]>
}

// The setup file and a test's own import of it may be two instances of this module: the state hangs on the process.
const slot = Symbol.for('chokaq.test.console-watch')
const holder = globalThis as { [slot]?: Watch }
const watch: Watch = (holder[slot] ??= install())

function install(): Watch {
  const state: Watch = { unexpected: [], allowed: new Map() }
  for (const method of methods) {
    console[method] = (...parts: unknown[]): void => {
      const line = parts.map((part) => (part instanceof Error ? (part.stack ?? part.message) : String(part))).join(' ')
      const allowed = state.allowed.get(method)
      if (allowed) allowed.push(line)
      else state.unexpected.push(`console.${method}: ${line}`)
    }
  }
  return state
}

/** Lets the running test call `console[method]`; the returned array fills with the printed lines. */
export function allowConsole(method: ConsoleMethod): readonly string[] {
  const lines: string[] = []
  watch.allowed.set(method, lines)
  return lines
}

/** Throws if something was printed that no test allowed, and forgets it. */
export function failOnUnexpectedOutput(): void {
  const printed = watch.unexpected
  watch.unexpected = []
  watch.allowed.clear()
  if (printed.length > 0) {
    throw new Error(`Unexpected console output (see allowConsole in test/fail-on-console.ts):\n${printed.join('\n')}`)
  }
}

beforeEach(() => {
  watch.allowed.clear()
})
afterEach(failOnUnexpectedOutput)
afterAll(failOnUnexpectedOutput)
