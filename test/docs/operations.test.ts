// docs/operations: the metrics reference is the catalogue of the code, and rules and dashboard ask for what exists.
import { parser } from '@prometheus-io/lezer-promql'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { eventLevels } from '../../src/core/event-log.ts'
import { clusterInstruments, processInstruments, type InstrumentInfo } from '../../src/otel/catalogue.ts'
import { anchorsOf, codeWords, readPage, tableRows } from './markdown-pages.ts'

const catalogue: Readonly<Record<string, InstrumentInfo>> = { ...processInstruments, ...clusterInstruments }

/** The series that Prometheus sees of an instrument. */
function seriesOf(name: string, { kind }: InstrumentInfo): readonly string[] {
  const plain = name.replaceAll('.', '_')
  if (kind === 'histogram') return ['bucket', 'count', 'sum'].map((part) => `${plain}_${part}`)
  return kind === 'counter' || kind === 'observable counter' ? [`${plain}_total`] : [plain]
}

const series = new Map(
  Object.entries(catalogue).flatMap(([name, info]) =>
    seriesOf(name, info).map((each) => [
      each,
      new Set([...info.attributes.map((attribute) => attribute.replaceAll('.', '_')), 'le']),
    ]),
  ),
)

interface Query {
  readonly isValid: boolean
  readonly metrics: readonly string[]
  readonly labels: readonly string[]
}

function readQuery(text: string): Query {
  const query = { isValid: true, metrics: [] as string[], labels: [] as string[] }
  parser.parse(text).iterate({
    enter({ type, from, to, node }) {
      if (type.isError) query.isValid = false
      if (type.name === 'Identifier' && node.parent?.name === 'VectorSelector') query.metrics.push(text.slice(from, to))
      if (type.name === 'LabelName') query.labels.push(text.slice(from, to))
    },
  })
  return query
}

/** What is wrong with a query; nothing where it parses and asks for series and labels that there are. */
function problems(text: string, recorded: ReadonlySet<string> = new Set()): readonly string[] {
  const { isValid, metrics, labels } = readQuery(text)
  const known = new Set(metrics.flatMap((name) => [...(series.get(name) ?? [])]))
  return [
    ...(isValid ? [] : [`no PromQL: ${text}`]),
    ...metrics.filter((name) => !series.has(name) && !recorded.has(name)),
    ...labels.filter((label) => !known.has(label)),
  ]
}

describe('docs/operations/metrics.md', () => {
  const page = readPage('docs/operations/metrics.md')

  it.each([
    ['Of this process', processInstruments],
    ['Of the whole cluster', clusterInstruments],
  ] as const)('lists the instruments "%s" as the code makes them', (heading, instruments) => {
    const rows = tableRows(page, heading).map(([name = '', kind, unit = '', attributes = '', what]) => [
      codeWords(name)[0],
      { kind, unit: codeWords(unit)[0], attributes: codeWords(attributes), description: what },
    ])
    expect(Object.fromEntries(rows)).toEqual(instruments)
  })

  it('lists the level of each event in the log', () => {
    const rows = tableRows(page, 'Logs').flatMap(([level = '', events = '']) =>
      codeWords(events).map((event) => [event, codeWords(level)[0]]),
    )
    expect(Object.fromEntries(rows)).toEqual(eventLevels)
  })
})

interface Rule {
  readonly record?: string
  readonly alert?: string
  readonly expr: string
  readonly for?: string
  readonly labels?: { readonly severity: string }
  readonly annotations?: { readonly summary: string; readonly description: string; readonly runbook_url: string }
}

describe('docs/operations/alerts.rules.yml', () => {
  const { groups } = parse(readPage('docs/operations/alerts.rules.yml')) as {
    readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[]
  }
  const rules = groups.flatMap((group) => group.rules)
  const alerts = rules.filter(({ alert }) => alert !== undefined)
  const recorded = new Set(rules.flatMap(({ record }) => record ?? []))

  it('asks in valid PromQL for series and labels that there are', () => {
    expect(rules.flatMap(({ expr }) => problems(expr, recorded))).toEqual([])
  })

  it('has only fields that Prometheus takes', () => {
    for (const { name, rules: ofGroup, ...rest } of groups) {
      expect([name, Object.keys(rest)]).toEqual([expect.stringMatching(/^chokaq-/), []])
      for (const rule of ofGroup) {
        const known = rule.alert === undefined ? ['record', 'expr'] : ['alert', 'expr', 'for', 'labels', 'annotations']
        expect(Object.keys(rule).filter((field) => !known.includes(field))).toEqual([])
        expect(rule.for ?? '1m').toMatch(/^\d+[smh]$/)
      }
    }
  })

  it('says of each alert how bad it is, what it means and what to do', () => {
    const anchors = anchorsOf(readPage('docs/operations/runbooks.md'))
    for (const { alert, labels, annotations } of alerts) {
      expect([alert, labels?.severity]).toEqual([alert, expect.stringMatching(/^(warning|critical)$/)])
      expect(annotations?.summary.length).toBeGreaterThan(0)
      expect(annotations?.description.length).toBeGreaterThan(0)
      const [file, anchor = ''] = annotations?.runbook_url.split('#') ?? []
      expect([alert, file, anchors.has(anchor)]).toEqual([alert, 'docs/operations/runbooks.md', true])
    }
  })

  it('is what docs/operations/alerts.md lists', () => {
    const rows = tableRows(readPage('docs/operations/alerts.md'), 'What wakes whom')
    const listed = rows.map(([name = '', severity, , runbook = '']) => [
      codeWords(name)[0],
      severity,
      /\((.*)\)/.exec(runbook)?.[1],
    ])
    expect(listed).toEqual(
      alerts.map(({ alert, labels, annotations }) => [
        alert,
        labels?.severity,
        annotations?.runbook_url.replace('docs/operations/', ''),
      ]),
    )
  })
})

describe('docs/operations/grafana.json', () => {
  const dashboard = JSON.parse(readPage('docs/operations/grafana.json')) as {
    readonly title: string
    readonly schemaVersion: number
    readonly panels: readonly {
      readonly id: number
      readonly title: string
      readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
      readonly targets: readonly { readonly expr: string }[]
    }[]
  }
  // Grafana puts a duration in their place before Prometheus reads the query.
  const queries = dashboard.panels.flatMap(({ targets }) =>
    targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '5m')),
  )

  it('asks in valid PromQL for series and labels that there are', () => {
    expect(queries.flatMap((query) => problems(query))).toEqual([])
  })

  it('has panels with ids and titles of their own that fit into the grid', () => {
    const { panels } = dashboard
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length)
    expect(panels.filter(({ gridPos }) => gridPos.x + gridPos.w > 24)).toEqual([])
    expect(new Set(panels.map(({ gridPos }) => `${gridPos.x} ${gridPos.y}`)).size).toBe(panels.length)
  })
})

describe('the check of queries itself', () => {
  it.each([
    ['sum(rate(chokaq_jobs_dlq_total[5m])', 'no PromQL'],
    ['chokaq_jobs_dlq', 'chokaq_jobs_dlq'],
    ['sum by (colour) (chokaq_jobs_dlq_total)', 'colour'],
    ['chokaq_jobs_dlq_total{colour="red"}', 'colour'],
  ])('finds what is wrong with %s', (query, problem) => {
    expect(problems(query)).toEqual([expect.stringContaining(problem)])
  })
})
