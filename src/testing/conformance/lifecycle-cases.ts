/**
 * The table of core/lifecycle.ts, walked: for every verb and every way it may go there is a recipe that goes it, or a
 * written reason why no call can. A recipe moves one job from where the table says to where the table says, and may
 * raise no counter that the table does not list.
 */
import { isTransition, transitions, type Place, type Verb } from '../../core/lifecycle.ts'
import { fromTable, type CaseGroup } from './cases.ts'
import { recipes } from './lifecycle-recipes.ts'
import { placeOf, type Scene } from './scene.ts'

const unreachable: readonly (readonly [Verb, Place, Place, string])[] = [
  ['retry', 'fetched', 'dlq', 'a job that never started leaves no doubt, so its cancel archives it'],
  ['cancel', 'scheduled', 'dlq', 'a waiting job does nothing that could be in doubt'],
  ['cancel', 'pending', 'dlq', 'a waiting job does nothing that could be in doubt'],
  ['resolve', 'dlq', 'archive', 'the port has no review decisions yet'],
  ['resolve', 'dlq', 'pending', 'the port has no review decisions yet'],
]

function stepName(verb: Verb, from: Place, to: Place): string {
  return `${verb}: ${from} -> ${to}`
}

const everyStep = transitions.flatMap(({ verb, from, to }) =>
  from.flatMap((source) => to.map((target) => stepName(verb, source, target))),
)

async function countersOf(scene: Scene): Promise<Record<string, number>> {
  const sums: Record<string, number> = {}
  for (const { name, value } of await scene.inspector.stats()) sums[name] = (sums[name] ?? 0) + value
  return sums
}

const walked = fromTable(
  recipes,
  ({ verb, from, to }) => stepName(verb, from, to),
  async (scene, { verb, from, to, prepare }) => {
    const { expect } = scene
    const { jobId, act } = await prepare(scene)
    expect(placeOf(await scene.find(jobId)), 'where it starts').toBe(from)
    const before = await countersOf(scene)
    await act()
    expect(placeOf(await scene.find(jobId)), 'where it ends').toBe(to)
    expect(isTransition(verb, from, to)).toBe(true)
    const after = await countersOf(scene)
    const raised = Object.keys(after).filter((name) => after[name] !== before[name])
    const allowed: readonly string[] = transitions.find((row) => row.verb === verb)?.counters ?? []
    expect(raised.filter((name) => !allowed.includes(name))).toEqual([])
  },
)

export const lifecycleCases: CaseGroup = {
  title: 'lifecycle',
  cases: {
    'every step of the table has a recipe or a reason, and none has both': async ({ expect }) => {
      const gone = recipes.map(({ verb, from, to }) => stepName(verb, from, to))
      const excused = unreachable.map(([verb, from, to]) => stepName(verb, from, to))
      expect([...gone, ...excused].sort()).toEqual([...everyStep].sort())
    },

    ...walked,
  },
}
