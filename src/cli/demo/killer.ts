/**
 * Kills the worker in one place again and again: never blindly, always while a handler runs or the provider works on a
 * charge of this very process. What a kill hit is proven afterwards, from the provider's log and the job records.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { plannedKills } from './settings.ts'
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
  /** Which processes the provider owes an answer. */
  readonly workersInFlight: () => Promise<readonly string[]>
  /** How much of the deliveries has been sent: 0 to 1. */
  readonly progress: () => number
  readonly onKill: (kill: Kill) => void
  readonly signal: AbortSignal
}

const lookMs = 10

export class Killer {
  readonly #options: KillerOptions

  #killCount = 0

  constructor(options: KillerOptions) {
    this.#options = options
  }

  /** How far the sender may go: one kill ahead, so that the kills are spread over the whole run. */
  get allowedProgress(): number {
    return (this.#killCount + 2) / (plannedKills + 2)
  }

  /** Returns after the last kill, with a new worker in place. */
  async run(): Promise<void> {
    const { place, signal } = this.#options
    while (this.#killCount < plannedKills) {
      // Every other kill waits for a charge in flight; the rest take any handler that runs.
      const wantsCharge = this.#killCount % 2 === 0
      while (!(this.#isDue() && (await this.#isHittable(wantsCharge)))) await wait(lookMs, undefined, { signal })
      await this.#kill()
      await place.start()
    }
  }

  #isDue(): boolean {
    return this.#options.progress() >= (this.#killCount + 1) / (plannedKills + 2)
  }

  async #isHittable(wantsCharge: boolean): Promise<boolean> {
    const { place, workersInFlight } = this.#options
    if (place.running.length === 0) return false
    return !wantsCharge || (await workersInFlight()).includes(place.processName)
  }

  async #kill(): Promise<void> {
    const { place, onKill } = this.#options
    const { processName: worker, workerId, pid } = place
    const atMs = Date.now()
    const interrupted = await place.kill()
    this.#killCount += 1
    onKill({ worker, workerId, pid, atMs, interrupted })
  }
}
