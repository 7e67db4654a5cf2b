// The checklist that this project grew from, row by row, and where docs/idempotent-handlers.md answers it.
import { describe, expect, it } from 'vitest'
import * as worker from 'chokaq/worker'
import { claimOutcomes } from '../../src/core/counters.ts'
import { formatMs } from '../../src/core/duration.ts'
import { codeWords, proseOf, readPage, sectionOf, tableRows } from './markdown-pages.ts'

interface Row {
  /** As the original page has it. */
  readonly row: string
  /** The section that answers it; undefined for the text above the first one. */
  readonly section?: string
  /** What the answer has to say. */
  readonly says: readonly string[]
}

const page = readPage('docs/idempotent-handlers.md')
const head = page.split('\n## ')[0] ?? ''
const claims = 'What claims do, and where they end'
const alternatives = 'What are the alternatives?'

const rows: readonly Row[] = [
  {
    row: 'At-least-once: a handler can run more than once if a worker crashes after a side effect and before finalization',
    says: [
      'at least once',
      'runs more than once',
      'crashes after user code has produced a side effect',
      'before the completion is stored',
    ],
  },
  { row: 'Make every side-effecting handler idempotent', says: ['make every handler with side effects idempotent'] },
  {
    row: 'What is the business idempotency key? Order, invoice, webhook event, payment attempt, or another stable domain key',
    says: [
      'What is the business idempotency key?',
      'order id, invoice id, webhook event id, payment attempt id, or another stable key of the domain',
    ],
  },
  {
    row: 'Where is the key enforced? In the system that owns the side effect',
    says: [
      'Where is the key enforced?',
      'in the system that owns the side effect',
      'unique constraint',
      "provider's idempotency key",
      'outbox',
    ],
  },
  {
    row: 'How long can duplicates arrive? TTL from business reality, not from retry settings alone',
    section: 'How long can duplicates arrive?',
    says: ['business reality, not from retry settings', 'TTL'],
  },
  {
    row: 'What happens after partial side effects? Store enough state to retry safely, or send it to manual review',
    says: ['What happens after partial side effects?', 'enough is stored to go on safely', 'manual review'],
  },
  {
    row: 'Pattern: database unique constraint plus upsert',
    section: 'Patterns',
    says: ['unique constraint plus upsert'],
  },
  {
    row: 'Pattern: payment/email/webhook provider idempotency key',
    section: 'Patterns',
    says: ['Idempotency key of a provider of payments, email or webhooks'],
  },
  {
    row: 'Pattern: outbox table for local transaction plus later publish',
    section: 'Patterns',
    says: ['Outbox table for a local transaction plus a later publish'],
  },
  {
    row: 'Pattern: read-before-write when repeating the handler converges to the same state',
    section: 'Patterns',
    says: ['Read before write, where repeating the handler converges to the same state'],
  },
  {
    row: 'Pattern: manual review for operations that cannot be made safe to repeat',
    section: 'Patterns',
    says: ['Manual review of operations that cannot be made safe to repeat'],
  },
  {
    row: 'Middleware: an InProgress claim before the handler, concurrent duplicates skipped, a completion marker after success',
    section: claims,
    says: [
      'middleware',
      'before the handler runs',
      'concurrent duplicate is skipped',
      'marker of the completion is written after success',
      'turns them off',
    ],
  },
  {
    row: 'Middleware: reduces duplicate execution for one active key, and does not make external systems exactly-once',
    section: claims,
    says: ['reduces how often a handler runs for one key', 'does not make external systems exactly-once'],
  },
  {
    row: 'Metric: chokaq.idempotency.claims and its outcomes',
    section: claims,
    says: ['idempotency.claims', ...claimOutcomes],
  },
  {
    row: 'complete_conflict: the handler finished, but the marker could not be stored for that key/job pair; investigate',
    section: claims,
    says: [
      'Investigate every complete_conflict',
      'the handler finished, but the completion marker could not be stored for this key and job',
    ],
  },
  {
    row: 'Why this pattern: honest, pushes safety to the business boundary, idempotent handlers are the answer',
    section: 'Why is handler idempotency required?',
    says: ['honest', 'boundary of the business', 'Idempotent handlers are the answer of the application'],
  },
  {
    row: 'Trade-offs: data modelling and retention decisions; necessary for payments, email, webhooks, external writes',
    section: 'What does it cost?',
    says: ['Data modelling', 'retention', 'payments, email, webhooks and every other external write'],
  },
  {
    row: 'Alternative: trust queue exactly-once. Simple; a false assumption for real crashes',
    section: alternatives,
    says: ["Trust a queue's exactly-once", 'simple', 'a false assumption'],
  },
  {
    row: 'Alternative: disable retries. Avoids retry duplicates; loses resilience and does not solve crash windows',
    section: alternatives,
    says: ['Disable retries', 'no duplicates by retry', 'resilience is lost', 'crash window is still there'],
  },
  {
    row: 'Alternative: provider idempotency only. Strong where available; not every dependency supports it',
    section: alternatives,
    says: ['Provider idempotency only', 'strong where available', 'not every dependency supports it'],
  },
  {
    row: 'Why is handler idempotency required? Because a job can execute more than once after crash/recovery',
    section: 'Why is handler idempotency required?',
    says: ['can run more than once after a crash and its recovery'],
  },
  {
    row: 'What is the hardest duplicate window? The side effect succeeds, then the process crashes before the job is archived',
    section: 'What is the hardest duplicate window?',
    says: ['external side effect succeeds, then the process crashes before ChokaQ has archived the job'],
  },
  {
    row: 'What should payment jobs use? A provider-supported idempotency key tied to the business payment attempt',
    section: 'What should payment jobs use?',
    says: ['idempotency key that the provider supports, tied to the business payment attempt'],
  },
]

/** Words alone: line breaks, table rules and code marks say nothing. */
function plain(text: string): string {
  return text
    .replaceAll('`', '')
    .replaceAll('**', '')
    .replace(/[\s|]+/g, ' ')
}

describe('docs/idempotent-handlers.md', () => {
  it.each(rows)('answers: $row', ({ section, says }) => {
    const text = plain(proseOf(section === undefined ? head : sectionOf(page, section)))
    expect(says.filter((phrase) => !text.toLowerCase().includes(phrase.toLowerCase()))).toEqual([])
  })

  it('links a page for each pattern, which says when, how, what it costs and what remains', () => {
    const linked = tableRows(page, 'Patterns').map(
      ([, , link = '']) => /\((patterns\/[a-z-]+\.md)\)/.exec(link)?.[1] ?? '',
    )
    expect(linked).toHaveLength(6)
    for (const target of linked) {
      const headings = [...readPage(`docs/${target}`).matchAll(/^## (.+)$/gm)].map(([, title]) => title)
      expect(headings, target).toEqual(['When', 'How', 'What it costs', 'What remains'])
    }
  })
})

describe('docs/effects.md', () => {
  const documented = tableRows(readPage('docs/effects.md'), 'Providers')

  it('describes every ready provider as the code does', () => {
    const ready = Object.entries(worker).filter(([, one]) => typeof one === 'object' && 'callTimeoutMs' in one)
    const inCode = ready.map(([name, one]) => {
      const { keyed } = one as worker.Provider
      return keyed === undefined
        ? [name, 'none', '', '']
        : [name, `≤ ${keyed.format.maxLength}`, formatMs(keyed.windowMs).replace('1d', '24h'), keyed.onProviderError]
    })
    const onPage = documented.map(([name = '', key = '', window, after]) => [
      codeWords(name)[0],
      /≤ \d+/.exec(key)?.[0] ?? key,
      window,
      after,
    ])
    expect(onPage.toSorted()).toEqual(inCode.toSorted())
  })

  it('names a source for each', () => {
    expect(documented.filter(([, , , , source]) => source === undefined || source === '')).toEqual([])
  })
})
