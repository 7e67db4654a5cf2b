/** What a handler's own asynchronous transactions borrow from other stages, and its checkpoints. */
import { contractOf } from '../core/contract.ts'
import type { FetchedJob } from '../core/job.ts'
import { checkResult } from '../core/preparation.ts'
import { prepareJob } from './enqueue/prepare-job.ts'
import { sent } from './enqueue/sent-jobs.ts'
import type { GateResult } from './fetch/gate.ts'
import { Checkpoints } from './process/checkpoints.ts'
import type { OutcomeRequest } from './process/effect-recorder.ts'
import type { CtxServices } from './process/handler-ctx.ts'
import { jsonTextFor, type AttemptIdentity, type WorkerCore } from './worker-core.ts'
import { completion, inherit, refuseUncompleted, refuseUnstored } from './worker-services.ts'
import type { RegisteredType } from './worker-types.ts'

type TransactionServices = Pick<CtxServices, 'enqueueChildIn' | 'completeIn' | 'checkpoints'>

export function transactionsFor(
  core: WorkerCore,
  of: AttemptIdentity,
  job: FetchedJob,
  type: RegisteredType,
  gate: Extract<GateResult, { kind: 'run' }>,
  outcomes: () => readonly OutcomeRequest[],
): TransactionServices {
  const { driver, runtime, client, tracing } = core
  const jsonText = jsonTextFor(core)
  let checkpoints: Checkpoints | undefined
  return {
    async enqueueChildIn(tx, child, payload, options, lineage) {
      const contract = contractOf(child)
      const { row } = await prepareJob(contract, payload, inherit(options, job), client, runtime, lineage)
      const [verdict] = await sent(tracing, [row], (rows) => driver.enqueueIn(tx, rows))
      refuseUnstored(child.type, row.id, verdict)
    },
    async completeIn(tx, result, children) {
      const text = await checkResult(type.handler.contract, result, (value) =>
        jsonText(value, `The result of "${job.type}"`),
      )
      const action = completion(type, client, text, children)
      refuseUncompleted(job, await driver.completeIn(tx, { lease: job.lease, outcomes: outcomes(), action }))
    },
    checkpoints() {
      checkpoints ??= new Checkpoints({
        jsonText,
        request: (name) => ({
          lease: job.lease,
          ref: {
            kind: 'checkpoint',
            keyRef: gate.keyHash ?? `job:${job.lease.jobId}`,
            generation: job.generation,
            name,
            item: '',
          },
          id: runtime.newId(),
          workerId: of.workerId,
          attempt: of.attempt,
          keepMs: type.ledgerKeepMs,
        }),
        transaction: (request, work) => driver.transaction(request, work),
        transactionSync: (request, work) => driver.transactionSync(request, work),
      })
      return checkpoints
    },
  }
}
