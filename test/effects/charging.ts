// A payment whose only side effect is a declared effect, and the workers that crash in the middle of it.
import {
  createWorker,
  defineEffect,
  defineHandler,
  type EffectDefinition,
  type Handler,
  type RetryOptions,
} from 'chokaq/worker'
import { capture } from '../engine/contracts.ts'
import type { World } from '../engine/world.ts'
import { acme, FakeProvider, type Charge } from './fake-provider.ts'

export interface ChargeInput {
  readonly paymentId: string
  readonly amount: number
}
type Definition = Partial<EffectDefinition<ChargeInput, Charge>>

export function providerOf(world: World, takesKeys = true): FakeProvider {
  return new FakeProvider({ takesKeys, nowMs: () => world.runtime.clock.nowMs() })
}

export function chargeOf(provider: FakeProvider, change: Definition = {}) {
  return defineEffect<ChargeInput, Charge>({
    name: 'charge',
    provider: acme,
    run: (input, options) => provider.act(input.paymentId, options),
    ...change,
  })
}

/** The handler of `capture` with one effect. `after` runs behind it. */
export function charging(
  provider: FakeProvider,
  change: Definition = {},
  options: { readonly retry?: RetryOptions; readonly after?: () => unknown } = {},
): Handler {
  const { after, ...rest } = options
  return defineHandler(capture, {
    sideEffects: 'effects',
    effects: { charge: chargeOf(provider, change) },
    whenInterrupted: 'resume',
    ...rest,
    async run(p, ctx) {
      const { id } = await ctx.effects.charge({ paymentId: p.paymentId, amount: p.amount })
      await after?.()
      return { chargeId: id }
    },
  })
}

let pid = 2_000

/**
 * A worker takes the job and dies in the call: after the provider acted, or (`before`) before the call arrived. Resolves
 * when it is dead.
 */
export async function crashInCall(
  world: World,
  provider: FakeProvider,
  handlers: readonly Handler[],
  how: { readonly isSeen: boolean; readonly before?: boolean; readonly at?: (what: string) => boolean },
): Promise<void> {
  const { isSeen, before = false, at = () => true } = how
  pid += 1
  const own = world.process(pid)
  let isDead = false
  const die = (what: string): Promise<never> | undefined => {
    if (isDead || !at(what)) return undefined
    isDead = true
    own.die({ isSeen })
    return new Promise(() => undefined)
  }
  const act = provider.act.bind(provider)
  if (before) provider.act = async (what, options) => (await die(what)) ?? act(what, options)
  else provider.acted = (what) => die(what)
  const worker = createWorker({ chokaq: own.chokaq, handlers })
  world.keep(worker)
  await world.runtime.complete(worker.start())
  await world.runtime.runUntil(() => isDead)
  if (before) provider.act = act
}
