/**
 * Kills the worker in one place again and again: never blindly, always while a handler runs or the provider works on a
 * charge of this very process. What a kill hit is proven afterwards, from the provider's log and the job records.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { plannedKills } from './settings.ts'
import type { InFlight } from './provider/server.ts'
import type { RunningHandler, WorkerPlace } from './worker-place.ts'

export interface Kill {
  readonly worker: string
  readonly workerId: string
  readonly pid: number
  readonly atMs: number
  readonly interrupted: readonly RunningHandler[]
}

export interface KillerOptions {
  readonly place: WorkerPlace
  /** The requests to which the provider owes an answer. */
  readonly chargesInFlight: () => Promise<readonly InFlight[]>
  /** How much of the deliveries has been sent: 0 to 1. */
  readonly progress: () => number
  readonly onKill: (kill: Kill) => void
  readonly signal: AbortSignal
}

const lookMs = 10
/** The provider takes at least 40 ms, so a request this young is still unanswered when the signal arrives. */
const youngMs = 25
const killsPerRound = 4

export class Killer {
  readonly #options: KillerOptions

  #killCount = 0
  #isOver = false
  #isReplacing = false

  constructor(options: KillerOptions) {
    this.#options = options
  }

  /** Nobody works in the place: what is sent now cannot be interrupted there. */
  get isReplacing(): boolean {
    return this.#isReplacing
  }

  /** How far the sender may go: one kill ahead, so that the kills are spread over the whole run. */
  get allowedProgress(): number {
    return (this.#killCount + 2) / (plannedKills + 2)
  }

  /** Returns after the last kill, with a new worker in place; before it where nothing is left to interrupt. */
  async run(): Promise<void> {
    const { place, signal } = this.#options
    while (this.#killCount < plannedKills && !this.#isOver) {
      // Most kills wait for a charge in flight; the others take any handler that runs.
      const wantsCharge = this.#killCount % killsPerRound !== killsPerRound - 1
      if (this.#isDue() && (await this.#isHittable(wantsCharge))) {
        this.#isReplacing = true
        await this.#kill()
        await place.start()
        this.#isReplacing = false
      } else {
        await wait(lookMs, undefined, { signal })
      }
    }
  }

  /** All work is done: what was not killed by now never will be. */
  stop(): void {
    this.#isOver = true
  }

  #isDue(): boolean {
    return this.#options.progress() >= (this.#killCount + 1) / (plannedKills + 2)
  }

  async #isHittable(wantsCharge: boolean): Promise<boolean> {
    const { place, chargesInFlight } = this.#options
    if (place.running.length === 0) return false
    if (!wantsCharge) return true
    const charges = await chargesInFlight()
    return charges.some(({ worker, ageMs }) => worker === place.name && ageMs <= youngMs)
  }

  async #kill(): Promise<void> {
    const { place, onKill } = this.#options
    const { name: worker, workerId, pid } = place
    const atMs = Date.now()
    const interrupted = await place.kill()
    this.#killCount += 1
    onKill({ worker, workerId, pid, atMs, interrupted })
  }
}
