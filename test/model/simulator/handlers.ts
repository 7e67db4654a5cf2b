// The jobs of the simulation. What a handler does at each attempt stands in the payload, so that a seed decides it once.
import { defineJob } from 'chokaq'
import { defineHandler, FatalError, NotExecuted, RetryAfter, type Ctx, type Handler } from 'chokaq/worker'
import { z } from 'zod'
import type { SeededRandom } from '../../../src/testing/index.ts'
import type { History } from './history.ts'
import type { SimProcess } from './process.ts'

const steps = ['ok', 'throw', 'fatal', 'retry-after', 'not-executed', 'deaf', 'child', 'die'] as const
export type Step = (typeof steps)[number]

const payload = z.object({
  op: z.number(),
  key: z.string(),
  /** One step for each attempt; the last one repeats. */
  plan: z.array(z.enum(steps)),
  workMs: z.number(),
})
export type SimPayload = z.infer<typeof payload>

const result = z.object({ op: z.number() })

export const plain = defineJob({ type: 'sim.plain.v1', payload, result })
export const keyed = defineJob({
  type: 'sim.keyed.v1',
  payload,
  result,
  key: (p) => p.key,
  sameWhen: () => 1,
  duplicateWindow: '7d',
})
export const review = defineJob({
  type: 'sim.review.v1',
  payload,
  result,
  key: (p) => p.key,
  sameWhen: () => 1,
  duplicateWindow: '7d',
})
/** Enqueued past its contract, too: then the worker computes the key and claims. It shares its keys with `keyed`. */
export const raw = defineJob({
  type: 'sim.raw.v1',
  keyScope: 'sim.keyed',
  payload,
  result,
  key: (p) => p.key,
  sameWhen: () => 1,
  duplicateWindow: '7d',
  allowRaw: true,
})
export const contracts = [plain, keyed, review, raw] as const

export const retry = { attempts: 4, backoff: { base: '1s', factor: 3, cap: '8s', jitter: 0.2 } } as const
export const crashBudget = 2

export function planOf(chance: SeededRandom, isDeadly: boolean): Step[] {
  if (isDeadly && chance.chance(0.06)) return ['die']
  if (chance.chance(0.08)) return ['throw']
  if (chance.chance(0.04)) return ['deaf']
  return Array.from({ length: 5 }, (_, i) =>
    i < 4 && chance.chance(0.35)
      ? chance.pick([
          'throw',
          'fatal',
          'retry-after',
          'not-executed',
          'deaf',
          'child',
          isDeadly ? 'die' : 'ok',
        ] as const)
      : 'ok',
  )
}

/** The handlers of one process: they wait on its clock, and die with it. */
export function handlersOf(process: SimProcess, history: History): readonly Handler[] {
  const run = async (p: SimPayload, ctx: Ctx): Promise<{ op: number }> => {
    const { jobId, key, attempt } = ctx
    history.add({ kind: 'run', process: process.name, jobId, key, attempt, payload: JSON.stringify(p) })
    const wait = (ms: number): Promise<void> => new Promise((resolve) => process.runtime.scheduler.after(ms, resolve))
    await wait(p.workMs)
    switch (p.plan[Math.min(attempt, p.plan.length) - 1]) {
      case 'throw':
        throw new Error(`attempt ${attempt} failed`)
      case 'fatal':
        throw new FatalError('never')
      case 'retry-after':
        throw new RetryAfter('2s')
      case 'not-executed':
        throw new NotExecuted('refused')
      case 'deaf':
        await wait(20_000)
        break
      case 'child':
        await ctx.enqueue(plain, { op: -p.op, key: '', plan: ['ok'], workMs: 5 })
        break
      case 'die':
        process.kill(true)
        await wait(1)
        break
      default:
    }
    return { op: p.op }
  }
  const options = { retry, timeout: '5s' } as const
  return [
    defineHandler(plain, { sideEffects: 'none', ...options, run }),
    defineHandler(keyed, { sideEffects: 'unique-constraint', whenInterrupted: 'resume', ...options, run }),
    defineHandler(raw, { sideEffects: 'read-before-write', whenInterrupted: 'resume', ...options, run }),
    defineHandler(review, { sideEffects: 'unguarded', whenInterrupted: 'review', ...options, run }),
  ]
}
