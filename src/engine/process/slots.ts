/**
 * How many handlers run at once. The limit may change at any time; lowering it stops nothing that runs. A suspect (a
 * job that was running when a worker died) runs only while no other suspect does, so that a poison job is soon alone
 * with itself.
 */
export class Slots {
  #limit: number
  #running = 0
  #suspects = 0
  #abandoned = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  get limit(): number {
    return this.#limit
  }
  set limit(limit: number) {
    this.#limit = limit
  }
  get runningCount(): number {
    return this.#running
  }
  /** Handlers that did not end after their signal was aborted: they hold no slot, but they are still there. */
  get abandonedCount(): number {
    return this.#abandoned
  }
  /** Too many abandoned handlers: the worker takes no new work until some of them end. */
  get clogged(): boolean {
    return this.#abandoned > this.#limit / 2
  }
  get free(): number {
    return this.clogged ? 0 : Math.max(0, this.#limit - this.#running)
  }

  mayRun(job: { readonly suspect: boolean }): boolean {
    return this.free > 0 && (!job.suspect || this.#suspects === 0)
  }

  take(job: { readonly suspect: boolean }): void {
    this.#running += 1
    if (job.suspect) this.#suspects += 1
  }

  give(job: { readonly suspect: boolean }): void {
    this.#running -= 1
    if (job.suspect) this.#suspects -= 1
  }

  abandon(ended: Promise<unknown>, onChange: () => void): void {
    this.#abandoned += 1
    const end = (): void => {
      this.#abandoned -= 1
      onChange()
    }
    ended.then(end, end)
  }
}
