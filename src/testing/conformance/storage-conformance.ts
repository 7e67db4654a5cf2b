/**
 * The contract of core/storage.ts as tests: every storage passes the same ones. A driver calls `storageConformance` with
 * its harness from a test file of its own; see test/conformance.
 *
 * Each case gets a fresh, empty storage on virtual time, with one registered worker. A driver that cannot pass a case
 * names it in `skip` with the reason; a skip that names no case fails, so that skips do not outlive what they excuse.
 */
import { createFakeRuntime } from '../fake-runtime.ts'
import { buryCases } from './bury-cases.ts'
import type { CaseBody, CaseGroup } from './cases.ts'
import { claimCases } from './claim-cases.ts'
import { completeCases } from './complete-cases.ts'
import { contentCases } from './content-cases.ts'
import { counterCases } from './counter-cases.ts'
import { enqueueCases } from './enqueue-cases.ts'
import { faultCases } from './fault-cases.ts'
import { openingCases } from './opening-cases.ts'
import { fastStartCases } from './fast-start-cases.ts'
import { fetchCases } from './fetch-cases.ts'
import type { ConformanceHarness } from './harness.ts'
import { inspectCases } from './inspect-cases.ts'
import { lookupCases } from './lookup-cases.ts'
import { keyHolderCases } from './key-holder-cases.ts'
import { ledgerBatchCases } from './ledger-batch-cases.ts'
import { ledgerCases } from './ledger-cases.ts'
import { ledgerHoldCases } from './ledger-hold-cases.ts'
import { ledgerPruneCases } from './ledger-prune-cases.ts'
import { lifecycleCases } from './lifecycle-cases.ts'
import { livenessCases } from './liveness-cases.ts'
import { metricCases } from './metric-cases.ts'
import { observedCases } from './observed-cases.ts'
import { operatorCases } from './operator-cases.ts'
import { queueCases } from './queue-cases.ts'
import { raceCases } from './race-cases.ts'
import { rescueCases } from './rescue-cases.ts'
import { resendCases } from './resend-cases.ts'
import { resolveCases } from './resolve-cases.ts'
import { resurrectCases } from './resurrect-cases.ts'
import { retryCases } from './retry-cases.ts'
import { Scene } from './scene.ts'
import { settleBatchCases } from './settle-batch-cases.ts'
import { startCases } from './start-cases.ts'
import { sweepCases } from './sweep-cases.ts'

/** In the order in which a job meets them. */
export const conformanceGroups: readonly CaseGroup[] = [
  enqueueCases,
  keyHolderCases,
  resendCases,
  fetchCases,
  fastStartCases,
  claimCases,
  startCases,
  completeCases,
  retryCases,
  buryCases,
  settleBatchCases,
  ledgerCases,
  ledgerBatchCases,
  ledgerHoldCases,
  ledgerPruneCases,
  livenessCases,
  rescueCases,
  sweepCases,
  queueCases,
  raceCases,
  inspectCases,
  lookupCases,
  observedCases,
  operatorCases,
  resurrectCases,
  resolveCases,
  contentCases,
  counterCases,
  metricCases,
  faultCases,
  openingCases,
  lifecycleCases,
]

export function storageConformance(harness: ConformanceHarness): void {
  const { describe, test, expect } = harness.api
  const skips = new Map((harness.skip ?? []).map((skip) => [skip.case, skip.reason]))
  describe(`${harness.name} conforms to the storage port`, () => {
    test('the skips name cases and give reasons, and every case has a name of its own', () => {
      const names = conformanceGroups.flatMap(({ cases }) => Object.keys(cases))
      expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
      expect([...skips.keys()].filter((name) => !names.includes(name))).toEqual([])
      expect([...skips.values()].filter((reason) => reason.trim().length < 10)).toEqual([])
    })
    for (const { title, cases } of conformanceGroups) {
      describe(title, () => {
        for (const [name, body] of Object.entries(cases)) {
          const reason = skips.get(name)
          if (reason === undefined) test(name, () => runCase(harness, name, body))
          else test.skip(`${name} (${reason})`, () => undefined)
        }
      })
    }
  })
}

async function runCase(harness: ConformanceHarness, name: string, body: CaseBody): Promise<void> {
  // Cases differ in their chance, and each repeats it.
  const seed = [...name].reduce((sum, character) => (sum * 31 + (character.codePointAt(0) ?? 0)) | 0, 7)
  const { yieldToHost } = harness
  const runtime = createFakeRuntime({ seed, ...(yieldToHost === undefined ? {} : { yieldToHost }) })
  const subject = await harness.create(runtime)
  try {
    await subject.driver.ready()
    const scene = new Scene(subject, runtime, harness.api.expect)
    await scene.worker('worker-1')
    await body(scene)
  } finally {
    await subject.cleanup()
  }
}
