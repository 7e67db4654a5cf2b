/**
 * Group commit: what is ready in the same tick shares one statement. One batch is under way at a time; what arrives
 * meanwhile waits and goes together. Each promise resolves when its own row is durable.
 */
import { assert } from '../core/errors.ts'
import type { Scheduler } from '../core/runtime.ts'

interface Waiting<In, Out> {
  readonly item: In
  readonly resolve: (out: Out) => void
  readonly reject: (error: unknown) => void
}

export class Batcher<In, Out> {
  readonly #scheduler: Pick<Scheduler, 'defer'>
  readonly #run: (items: readonly In[]) => Promise<readonly Out[]>
  readonly #maxBatchCount: number
  #waiting: Waiting<In, Out>[] = []
  #flushing = false

  constructor(options: {
    readonly scheduler: Pick<Scheduler, 'defer'>
    readonly maxBatchCount: number
    /** Must give one answer per item, in order. */
    readonly run: (items: readonly In[]) => Promise<readonly Out[]>
  }) {
    this.#scheduler = options.scheduler
    this.#run = options.run
    this.#maxBatchCount = options.maxBatchCount
  }

  submit(item: In): Promise<Out> {
    return new Promise<Out>((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      if (this.#waiting.length === 1 && !this.#flushing) {
        this.#flushing = true
        this.#scheduler.defer(() => void this.#flush())
      }
    })
  }

  async #flush(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, this.#maxBatchCount)
      try {
        const answers = await this.#run(batch.map((w) => w.item))
        assert(answers.length === batch.length, `a batch of ${batch.length} got ${answers.length} answers`)
        batch.forEach((w, i) => {
          w.resolve(answers[i] as Out)
        })
      } catch (error) {
        for (const w of batch) w.reject(error)
      }
    }
    this.#flushing = false
  }
}
