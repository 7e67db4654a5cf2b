/**
 * What one call of an effect gets. Its signal aborts with the attempt, and where the call takes longer than its
 * `callTimeout`: all arithmetic of windows (how long a key may be repeated, when `absent` is believed) counts on that
 * bound. A call that does not listen goes on; its answer, whenever it comes, is still the outcome.
 */
import type { CallOptions } from '../../core/effect.ts'
import { ChokaQError } from '../../core/errors.ts'
import type { Runtime, Timer } from '../../core/runtime.ts'

export interface CallBound {
  readonly effect: string
  readonly idempotencyKey: string
  readonly timeoutMs: number
  readonly attemptSignal: AbortSignal
}

/** Runs `call`. Its signal is made when it is first read, so that a call that ignores it costs nothing. */
export async function boundedCall<T>(
  { clock, scheduler }: Pick<Runtime, 'clock' | 'scheduler'>,
  { effect, idempotencyKey, timeoutMs, attemptSignal }: CallBound,
  call: (options: CallOptions) => Promise<T>,
): Promise<T> {
  const startedAtMs = clock.monotonicMs()
  let signal: AbortSignal | undefined
  let timer: Timer | undefined
  const makeSignal = (): AbortSignal => {
    const late = new AbortController()
    const leftMs = Math.max(0, timeoutMs - (clock.monotonicMs() - startedAtMs))
    const end = (): void => {
      late.abort(new ChokaQError('CHOKAQ_EFFECT_TIMEOUT', { effect, timeoutMs }))
    }
    timer = scheduler.after(leftMs, end, { keepAlive: false })
    return AbortSignal.any([attemptSignal, late.signal])
  }
  try {
    return await call({
      idempotencyKey,
      get signal() {
        return (signal ??= makeSignal())
      },
    })
  } finally {
    timer?.cancel()
  }
}
