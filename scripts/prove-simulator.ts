// Many seeds of the simulated system: `npm run proof:simulator -- --seeds 1000 --from 1`. Each broken invariant is told
// with its seed; the exit code is 1 where there is one.
import { parseArgs } from 'node:util'
import { violations } from '../test/model/simulator/invariants.ts'
import { simulate } from '../test/model/simulator/simulate.ts'

const { values } = parseArgs({
  options: { seeds: { type: 'string', default: '200' }, from: { type: 'string', default: '1' } },
})
const from = Number(values.from)
const count = Number(values.seeds)
let broken = 0
let jobs = 0
let deaths = 0
for (let seed = from; seed < from + count; seed += 1) {
  const simulation = await simulate(seed)
  jobs += simulation.rows.length
  deaths += simulation.deathCount
  for (const violation of violations(simulation)) {
    broken += 1
    console.log(`seed ${seed}: ${violation}`)
  }
}
console.log(`${count} seeds from ${from}: ${jobs} jobs, ${deaths} dead workers, ${broken} violations`)
process.exitCode = broken === 0 ? 0 : 1
