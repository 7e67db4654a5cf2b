// The one way in which these tests wait for what other processes do. Nothing here sleeps for a fixed time: a condition is
// looked at again and again until it holds, and a deadline turns a wait for ever into a failure that says what was missing.

const lookMs = 10

/** What `look` gives as soon as that is not undefined, null or false. Fails with `what` after `deadlineMs`. `keepAlive: false` lets the process end meanwhile. */
export function until<T>(
  what: string,
  deadlineMs: number,
  look: () => T | Promise<T>,
  options: { readonly keepAlive?: boolean } = {},
): Promise<Exclude<T, undefined | null | false>> {
  return new Promise((resolve, reject) => {
    const startedMs = performance.now()
    let looking = false
    const timer = setInterval(() => {
      if (looking) return
      looking = true
      void glance()
    }, lookMs)
    if (options.keepAlive === false) timer.unref()
    const end = (finish: () => void): void => {
      clearInterval(timer)
      finish()
    }
    const glance = async (): Promise<void> => {
      try {
        const found = await look()
        if (found !== undefined && found !== null && found !== false) {
          end(() => {
            resolve(found as Exclude<T, undefined | null | false>)
          })
        } else if (performance.now() - startedMs > deadlineMs) {
          end(() => {
            reject(new Error(`${what} did not come within ${deadlineMs} ms`))
          })
        }
      } catch (error) {
        end(() => {
          reject(error instanceof Error ? error : new Error(String(error)))
        })
      }
      looking = false
    }
  })
}

/** Until the time has passed. */
export async function pass(ms: number): Promise<void> {
  const endMs = performance.now() + ms
  await until('time to pass', ms + 10_000, () => performance.now() >= endMs)
}
