/** The real payloads: recorded GitHub webhooks of @octokit/webhooks-examples, which is installed by who wants the demo. */
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { join } from 'node:path'
import { ChokaQError } from '../../core/errors.ts'

const packageName = '@octokit/webhooks-examples'

export interface WebhookExample {
  /** GitHub's event name, such as 'pull_request'. */
  readonly event: string
  readonly payload: Readonly<Record<string, unknown>>
}

interface ExampleKind {
  readonly name: string
  readonly examples: readonly Readonly<Record<string, unknown>>[]
}

export function loadExamples(): readonly WebhookExample[] {
  return loadKinds().flatMap(({ name, examples }) => examples.map((payload) => ({ event: name, payload })))
}

/** Beside chokaq first, then where the command was typed: a global chokaq finds the package of the project. */
function loadKinds(): readonly ExampleKind[] {
  for (const from of [import.meta.url, pathToFileURL(join(process.cwd(), 'package.json'))]) {
    try {
      return createRequire(from)(packageName) as readonly ExampleKind[]
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error
    }
  }
  throw new ChokaQError('CHOKAQ_CONFIG_INVALID', {
    problem: `the demo delivers the payloads of ${packageName}, which is not installed. Run: npm install ${packageName}`,
  })
}
