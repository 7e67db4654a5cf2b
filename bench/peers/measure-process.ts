/** Runs one measurement and tells its figures to the process that started it. */
import { latency, snapshot, throughput, twoWorkers, type Assignment, type Figures } from './measurements.ts'

const assignment = JSON.parse(process.argv[2] ?? '') as Assignment

function measured(): Promise<Figures> {
  switch (assignment.measurement) {
    case 'throughput':
      return throughput(assignment)
    case 'two workers':
      return twoWorkers(assignment)
    case 'latency':
      return latency(assignment)
    case 'snapshot':
      return snapshot(assignment)
  }
}

const figures = await measured()
process.send?.({ figures }, () => process.exit(0))
