/** One handler in isolation: no storage, no worker, no timers of the real clock. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { resolveClientConfig, workerDefaults } from '../core/config.ts'
import { contractOf, type Job, type PayloadIn, type Stored } from '../core/contract.ts'
import { hasCode } from '../core/errors.ts'
import { describeFailure, type StoredFailure } from '../core/failure.ts'
import { handlerOf, type Handler, type ResolvedHandler } from '../core/handler.ts'
import type { FetchedJob, NewJob } from '../core/job.ts'
import { parseJson, toJsonText } from '../core/json-image.ts'
import { decide, type AttemptEnd } from '../core/outcome.ts'
import { checkResult, checkResultSync, keyText, readPayload } from '../core/preparation.ts'
import type { Runtime } from '../core/runtime.ts'
import { prepareJob, prepareJobSync, type PreparedJob } from '../engine/enqueue/prepare-job.ts'
import { Attempt } from '../engine/process/attempt.ts'
import { Checkpoints } from '../engine/process/checkpoints.ts'
import type { CtxServices } from '../engine/process/handler-ctx.ts'
import { createFakeRuntime } from './fake-runtime.ts'
import { TestingError } from './testing-error.ts'

/** One call of a declared effect. */
export interface EffectRun {
  readonly name: string
  readonly item?: string
  readonly input: unknown
}

export interface HandlerRun<R> {
  /** `review`: a person would have to decide. `failed`: it would be retried or buried. */
  readonly outcome: 'completed' | 'failed' | 'review'
  /** What the job would store; absent where it did not complete. */
  readonly result?: Stored<R>
  /** What was thrown, as it would be recorded. */
  readonly failure?: StoredFailure
  /** Calls of declared effects, in order. */
  readonly effects: readonly EffectRun[]
  /** Children, in order; those of a failed attempt are listed although they would be dropped. */
  readonly enqueued: readonly { readonly type: string; readonly payload: unknown }[]
}

/** Stands in for the effects of a handler, by name: gets the input, gives the result. */
export type World = Readonly<Record<string, (input: never) => unknown>>

/**
 * Runs one handler once, on the payload as it would be stored and read again, and tells what came of it.
 *
 * @example
 * const run = await testHandler(welcome, sendWelcome, { email: 'ada@example.org' })
 * expect(run.outcome).toBe('completed')
 * expect(run.enqueued).toEqual([{ type: 'mail.send.v1', payload: { to: 'ada@example.org' } }])
 *
 * @throws CHOKAQ_PAYLOAD_INVALID and the other refusals of enqueue: such a job would never reach the handler
 */
export async function testHandler<S extends StandardSchemaV1, R>(
  handler: Handler,
  job: Job<S, R>,
  payload: PayloadIn<S>,
  world: World = {},
): Promise<HandlerRun<R>> {
  const resolved = handlerOf(handler)
  const contract = contractOf(job)
  if (resolved.contract !== contract) {
    throw new TestingError(`The handler is for "${resolved.contract.type}" and the job is "${contract.type}"`)
  }
  const runtime = createFakeRuntime()
  const config = resolveClientConfig({})
  const { row } = await prepareJob(contract, payload, {}, config, runtime)
  const read = await readPayload(contract, row.payload)
  const recorded: Recorded = { children: [], effects: [], result: undefined }
  const timeoutMs = resolved.timeoutMs ?? workerDefaults.timeoutMs
  const attempt = new Attempt(
    {
      job: fetched(row, runtime),
      keyHash: row.key?.hash,
      key: keyText(contract, read.output, row.id),
      attempt: 1,
      payload: read.output,
      deadlineMs: runtime.clock.nowMs() + timeoutMs,
    },
    {
      scheduler: runtime.scheduler,
      handler: resolved,
      middleware: [],
      timeoutMs,
      abortGraceMs: workerDefaults.abortGraceMs,
      services: recordingServices(recorded, runtime, resolved, world),
      onAbort: () => undefined,
    },
  )
  const { end } = await attempt.run()
  const enqueued = recorded.children.map(({ type, payload: text }) => ({ type, payload: parseJson(text) }))
  return { ...outcomeOf<R>(end, recorded, resolved, runtime.clock.nowMs()), effects: recorded.effects, enqueued }
}

function outcomeOf<R>(
  end: AttemptEnd,
  { result }: Recorded,
  { whenInterrupted, retry }: ResolvedHandler,
  nowMs: number,
): Pick<HandlerRun<R>, 'outcome' | 'result' | 'failure'> {
  // Here the handler's transaction always commits.
  const inTransaction = end.kind === 'threw' && hasCode(end.thrown, 'CHOKAQ_COMPLETE_ROLLED_BACK')
  const completed = (text: string | null): Pick<HandlerRun<R>, 'outcome' | 'result'> => ({
    outcome: 'completed',
    result: (text === null ? undefined : parseJson(text)) as Stored<R>,
  })
  if (inTransaction && result !== undefined) return completed(result)
  if (end.kind === 'returned') return completed(end.result)
  const facts = { failureCount: 0, sinceFirstStartMs: 0, markerLifeMs: 0, keep: { kind: 'full' }, random: 0 } as const
  const action = decide(end, { ...facts, whenInterrupted, retry, nowMs })
  const failure = end.kind === 'threw' ? describeFailure(end.thrown) : end.failure
  return { outcome: action?.kind === 'bury' && action.hold ? 'review' : 'failed', failure }
}

interface Recorded {
  readonly children: NewJob[]
  readonly effects: EffectRun[]
  /** JSON text of what complete or completeSync was given; undefined where neither was called. */
  result: string | null | undefined
}

function recordingServices(recorded: Recorded, runtime: Runtime, handler: ResolvedHandler, world: World): CtxServices {
  const config = resolveClientConfig({})
  const limits = {
    maxBytes: workerDefaults.maxResultBytes,
    byteLength: (text: string) => runtime.byteLength(text),
  }
  const resultText = (result: unknown): string => toJsonText(result, 'The result', limits)
  const record = ({ row }: PreparedJob): NewJob => {
    recorded.children.push(row)
    return row
  }
  return {
    runtime,
    resultText,
    log: () => undefined,
    async enqueueChildIn(_tx, child, payload, options, lineage) {
      record(await prepareJob(contractOf(child), payload, options, config, runtime, lineage))
    },
    async completeIn(_tx, result) {
      recorded.result = await checkResult(handler.contract, result, resultText)
    },
    checkpoints: () =>
      new Checkpoints({
        jsonText: (value) => resultText(value),
        request: (name) => ({
          lease: { jobId: '', token: 1 },
          ref: { kind: 'checkpoint', keyRef: '', generation: 1, name, item: '' },
          id: '',
          workerId: '',
          attempt: 1,
          keepMs: 0,
        }),
        transaction: async (_request, work) => ({ kind: 'ran', result: await work(emptyTransaction) }),
        transactionSync: (_request, work) => ({ kind: 'ran', result: work(emptyTransaction) }),
      }),
    effectScope: () => recordingScope(recorded, handler, world, resultText),
    async prepareChild(child, payload, options, lineage) {
      return record(await prepareJob(contractOf(child), payload, options, config, runtime, lineage))
    },
    enqueueChildSync(_tx, child, payload, options, lineage) {
      record(prepareJobSync(contractOf(child), payload, options, config, runtime, lineage))
    },
    completeSync(_tx, result) {
      recorded.result = checkResultSync(handler.contract, result, resultText)
    },
  }
}

/** Takes every statement and finds nothing: a handler's SQL belongs to tests on a database. */
const emptyTransaction = {
  query: async () => ({ rows: [] }),
  prepare: () => ({ run: () => undefined, get: () => undefined, all: () => [] }),
}

/** Effects and memos without a ledger: a call is recorded and answered by the world, or by nothing. */
function recordingScope(
  recorded: Recorded,
  handler: ResolvedHandler,
  world: World,
  jsonText: (value: unknown) => string,
): ReturnType<CtxServices['effectScope']> {
  const image = (value: unknown): unknown => (value === undefined ? undefined : parseJson(jsonText(value)))
  const calls: Record<string, (input: unknown, options?: { readonly item?: string }) => Promise<unknown>> = {}
  for (const key of handler.effects.keys()) {
    calls[key] = async (input, options) => {
      const item = options?.item
      recorded.effects.push({ name: key, input: image(input), ...(item === undefined ? {} : { item }) })
      const stand = Object.hasOwn(world, key) ? world[key] : undefined
      return image(await stand?.(input as never))
    }
  }
  return { calls, memo: async (_name, compute) => image(await compute()) }
}

function fetched(row: NewJob, runtime: Runtime): FetchedJob {
  const nowMs = runtime.clock.nowMs()
  return {
    lease: { jobId: row.id, token: 1 },
    state: 'processing',
    type: row.type,
    queue: row.queue,
    payload: row.payload,
    priority: row.priority,
    tags: row.tags,
    tenant: row.tenant,
    key: row.key,
    fingerprint: row.fingerprint,
    generation: 1,
    attempt: 1,
    failureCount: 0,
    crashCount: 0,
    suspect: false,
    createdAtMs: nowMs,
    runAtMs: nowMs,
    firstStartedAtMs: nowMs,
    traceContext: undefined,
  }
}
