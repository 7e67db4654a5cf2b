/**
 * ctx.transaction: the handler's rows and a checkpoint commit together, under the lease. A later attempt finds the
 * checkpoint and gets its result, so what was committed once is never run again.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { ChokaQError } from '../../core/errors.ts'
import { parseJson } from '../../core/json-image.ts'
import type { CheckpointRequest, CheckpointVerdict } from '../../core/storage.ts'
import { refuseUnstorable } from './record-name.ts'

export interface CheckpointServices {
  request(name: string): CheckpointRequest
  jsonText(value: unknown, what: string): string
  transaction(request: CheckpointRequest, work: (tx: unknown) => Promise<string | null>): Promise<CheckpointVerdict>
  transactionSync(request: CheckpointRequest, work: (tx: unknown) => string | null): CheckpointVerdict
}

/** Set inside a transaction of any attempt: an effect called there would happen even if the transaction rolled back. */
const inside = new AsyncLocalStorage<true>()

export function isInTransaction(): boolean {
  return inside.getStore() === true
}

export class Checkpoints {
  readonly #services: CheckpointServices
  readonly #names = new Set<string>()
  readonly #over = new AbortController()

  constructor(services: CheckpointServices) {
    this.#services = services
  }

  /** The attempt is over: a transaction that is still open is rolled back, and its call rejects. */
  end(): void {
    this.#over.abort()
  }

  async run(name: string, work: (tx: never) => unknown): Promise<unknown> {
    const request = { ...this.#request(name), over: this.#over.signal }
    const verdict = await this.#services.transaction(request, (tx) =>
      inside.run(true, async () => this.#text(name, await work(tx as never))),
    )
    return this.#result(request, verdict)
  }

  runSync(name: string, work: (tx: never) => unknown): unknown {
    const request = this.#request(name)
    const verdict = this.#services.transactionSync(request, (tx) =>
      inside.run(true, () => {
        const value = work(tx as never)
        if (value instanceof Promise) {
          value.catch(() => undefined)
          throw new ChokaQError('CHOKAQ_TX_UNSUPPORTED', {
            call: 'ctx.transactionSync',
            problem: 'its callback returned a promise; a synchronous transaction would commit before that ends',
          })
        }
        return this.#text(name, value)
      }),
    )
    return this.#result(request, verdict)
  }

  #request(name: string): CheckpointRequest {
    refuseUnstorable('name', name, 1)
    if (isInTransaction()) {
      throw new ChokaQError('CHOKAQ_TX_UNSUPPORTED', {
        call: `ctx.transaction("${name}")`,
        problem: 'it was called inside another one, whose fate it would not share; run one after the other',
      })
    }
    if (this.#names.has(name)) throw new ChokaQError('CHOKAQ_CHECKPOINT_REPEATED', { name })
    this.#names.add(name)
    return this.#services.request(name)
  }

  #text(name: string, value: unknown): string | null {
    return value === undefined ? null : this.#services.jsonText(value, `The result of transaction "${name}"`)
  }

  #result({ lease }: CheckpointRequest, verdict: CheckpointVerdict): unknown {
    if (verdict.kind === 'lost') throw new ChokaQError('CHOKAQ_LEASE_LOST', { jobId: lease.jobId })
    return verdict.result === null ? undefined : parseJson(verdict.result)
  }
}
