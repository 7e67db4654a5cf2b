/**
 * Writes docs/lifecycle.md from the transition table in src/core/lifecycle.ts. With `--check` it writes nothing and fails
 * where the page is not what the table says.
 *
 *   node --import jiti/register scripts/generate-lifecycle-doc.ts [--check]
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { format, resolveConfig } from 'prettier'
import { transitions, type Place, type Transition } from '../src/core/lifecycle.ts'

const pagePath = fileURLToPath(new URL('../docs/lifecycle.md', import.meta.url))

const introduction = `# The life of a job

This page is generated from \`src/core/lifecycle.ts\`, the one table of all transitions. The storage has one statement
group for each row, and the conformance suite a group of cases.

A job is in exactly one of three pillars: **hot** (active), **archive** (finished) or **DLQ** (dead). In hot it has one of
four states:

| state        | waits for                                     | owned by a worker |
| ------------ | --------------------------------------------- | ----------------- |
| \`scheduled\`  | its time                                      | no                |
| \`pending\`    | a worker                                      | no                |
| \`fetched\`    | its start, in a worker's buffer               | yes               |
| \`processing\` | its handler to end, or has just been started  | yes               |

Whoever changes an owned job must hold its lease: job id and token. The token comes from one rising sequence per database,
and everyone but the owner raises it. So the lease of a stale worker matches no row, and its settle changes nothing.`

const afterDiagram = `The table pairs every source of a verb with every target, and so does the drawing; which target it is stands under the
verb. The four decisions behind \`resolve\` stand in [effects](effects.md#reviews).`

const afterTable = `## How a job ends

| pillar  | state       | why                                                                                      |
| ------- | ----------- | ---------------------------------------------------------------------------------------- |
| archive | \`completed\` | the handler returned, and its result was stored                                          |
| archive | \`skipped\`   | a duplicate: \`duplicateOf\` names the job it repeats, \`result\` is that job's, if it has one |
| archive | \`cancelled\` | an operator asked for it, or gave a review up                                                                 |
| DLQ     | \`dead\`      | \`reason\` says why; [idempotent handlers](idempotent-handlers.md#when-a-job-is-dead) says what to do |`

/** The whole page, formatted as Prettier wants it. */
export async function lifecyclePage(): Promise<string> {
  const text = [introduction, '## All transitions at a glance', diagram(), afterDiagram, afterTable, ...table()].join(
    '\n\n',
  )
  return format(text, { ...(await resolveConfig(pagePath)), parser: 'markdown' })
}

function diagram(): string {
  const labels = new Map<string, string[]>()
  for (const { verb, from, to } of transitions) {
    for (const [source, target] of pairs(from, to)) {
      const edge = `${node(source)} --> ${node(target)}`
      labels.set(edge, [...(labels.get(edge) ?? []), verb])
    }
  }
  const edges = [...labels].map(([edge, verbs]) => `  ${edge}: ${verbs.join(', ')}`)
  return ['```mermaid', 'stateDiagram-v2', ...edges, '```'].join('\n')
}

function pairs(from: readonly Place[], to: readonly Place[]): readonly (readonly [Place, Place])[] {
  return from.flatMap((source) => to.map((target) => [source, target] as const))
}

function node(place: Place): string {
  return place === 'nowhere' ? '[*]' : place
}

function table(): readonly string[] {
  const rows = transitions.map(
    (t) => `| [\`${t.verb}\`](#${t.verb}) | ${t.from.join(', ')} | ${t.to.join(', ')} | ${t.stage} | ${cell(t.who)} |`,
  )
  const head = '| verb | from | to | stage | who |\n| --- | --- | --- | --- | --- |'
  return ['## Each transition', [head, ...rows].join('\n'), ...transitions.map(details)]
}

function details({ verb, precondition, does, counters }: Transition): string {
  const counted = counters.length === 0 ? 'nothing' : counters.map((name) => `\`${name}\``).join(', ')
  return `### ${verb}\n\n- Needs: ${precondition}.\n- Does: ${does}.\n- Counts: ${counted}.`
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}

async function generate(isCheck: boolean): Promise<void> {
  const text = await lifecyclePage()
  if (existsSync(pagePath) && readFileSync(pagePath, 'utf8') === text) return
  if (!isCheck) writeFileSync(pagePath, text)
  else {
    process.stderr.write(`${pagePath} is not what src/core/lifecycle.ts says: run scripts/generate-lifecycle-doc.ts\n`)
    process.exitCode = 1
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await generate(process.argv.includes('--check'))
