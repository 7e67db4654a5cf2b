/** What the effects of one attempt borrow from the worker: the ledger, its windows, and a key to derive keys from. */
import type { WorkerConfig } from '../core/config.ts'
import { hasCode } from '../core/errors.ts'
import type { EventBus } from '../core/events.ts'
import type { FetchedJob } from '../core/job.ts'
import { effectKey } from '../core/key-canon.ts'
import type { LedgerRequest, LedgerVerdict } from '../core/ledger.ts'
import type { Runtime } from '../core/runtime.ts'
import type { StorageDriver } from '../core/storage.ts'
import { Batcher } from './batcher.ts'
import { withDeadline } from './deadline.ts'
import type { GateResult } from './fetch/gate.ts'
import { persist } from './persist.ts'
import { EffectScope, type ScopeGuards } from './process/effect-scope.ts'
import { jsonTextFor, type AttemptIdentity, type Ledger, type WorkerCore } from './worker-core.ts'
import type { RegisteredType } from './worker-types.ts'

const maxBatchCount = 500

/**
 * One ledger for the worker: what is ready in the same tick, of all its attempts, shares a transaction. A request whose
 * rows somebody has locked is offered again by itself, until they are free; nobody else waits for it.
 */
export function createLedger(parts: {
  readonly driver: StorageDriver
  readonly runtime: Runtime
  readonly events: EventBus
  readonly config: WorkerConfig
  /** True once nobody waits for an answer any more. */
  readonly stop: () => boolean
}): Ledger {
  const { driver, runtime, events, config, stop } = parts
  const { scheduler } = runtime
  const persistence = { scheduler, events, during: 'ledger', stop }
  const batcher = new Batcher<LedgerRequest, LedgerVerdict>({
    scheduler,
    maxBatchCount,
    run: (requests) =>
      persist(persistence, () =>
        withDeadline(scheduler, config.statementDeadlineMs, 'ledger', driver.ledger(requests)),
      ),
  })
  return (request) =>
    persist(persistence, async () => {
      const verdict = await batcher.submit(request)
      if (verdict.kind === 'refused' && hasCode(verdict.error, 'CHOKAQ_STORAGE_BUSY')) throw verdict.error
      return verdict
    })
}

export function effectScopeFor(
  core: WorkerCore,
  of: AttemptIdentity,
  job: FetchedJob,
  type: RegisteredType,
  gate: Extract<GateResult, { kind: 'run' }>,
  guards: ScopeGuards,
  confirmed: () => boolean,
): EffectScope {
  const { runtime, config, driver, events, tracing, ledger } = core
  const { generation, lease } = job
  const key = { jobId: lease.jobId, generation, ...(gate.keyHash === undefined ? {} : { keyHash: gate.keyHash }) }
  return new EffectScope(
    {
      lease,
      keyRef: gate.keyHash ?? `job:${lease.jobId}`,
      generation,
      attempt: of.attempt,
      workerId: of.workerId,
      keepMs: type.ledgerKeepMs,
    },
    type.handler.effects,
    {
      runtime,
      tracing,
      bounds: config,
      graceMs: config.abortGraceMs,
      confirmed,
      ledger,
      jsonText: jsonTextFor(core),
      derive: (name) => effectKey({ ...key, name }, (text) => runtime.sha256(text)),
      onEffect: (effect, outcome) => {
        if (events.active) events.emit({ name: 'effect.outcome', ...of, effect, outcome })
      },
      records: () => driver.inspector.effects(lease.jobId),
    },
    guards,
  )
}
