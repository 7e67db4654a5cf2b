import { misconfigured } from './keyed-contract.ts'

/** Computes the key hash a request would get under a given Idempotency-Key. */
type KeyHashUnder = (idempotencyKey: string) => Promise<string | undefined>

/**
 * Guards against a payload or key function that ignores the header: every client would then share one key, or the header
 * would protect nothing. It is asked at the first requests, until one of them could tell: the key under the client's
 * header and the key under a random one must differ. A probe that the schema or a callback refuses tells nothing.
 *
 * @throws CHOKAQ_CONFIG_INVALID, again for every request, because nothing of it may be stored
 */
export function createHeaderCheck(
  type: string,
): (keyHashUnder: KeyHashUnder, key: string, probe: string) => Promise<void> {
  let follows: boolean | undefined
  return async (keyHashUnder, key, probe) => {
    if (follows === undefined) {
      const hash = await keyHashUnder(key).catch(() => undefined)
      const probed = hash === undefined ? undefined : await keyHashUnder(probe).catch(() => undefined)
      if (hash !== undefined && probed !== undefined) follows = hash !== probed
    }
    if (follows === false) {
      misconfigured(
        `the key of "${type}" does not change with the Idempotency-Key header. ` +
          'Put the key that payload() gets into the payload, and make the key function of the contract return it.',
      )
    }
  }
}
