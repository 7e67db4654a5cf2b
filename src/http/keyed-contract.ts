/** What a receiver checks when it is made, so that a wrong set-up fails at boot and not at the first delivery. */
import { contractOf, type Job, type JobContract } from '../core/contract.ts'
import { unknownKeyProblem } from '../core/did-you-mean.ts'
import { ChokaQError } from '../core/errors.ts'

/**
 * The contract of a job whose key comes from its payload. A redelivery must meet the key of the first delivery; without
 * a key, or with `key: 'job-id'`, each one would be an operation of its own.
 *
 * @throws CHOKAQ_CONFIG_INVALID
 */
export function keyedContract(job: Job, receiver: string): JobContract {
  const contract = contractOf(job)
  if (typeof contract.key === 'function') return contract
  const has = contract.key === 'none' ? 'has no key' : "has key: 'job-id'"
  return misconfigured(
    `${receiver} needs a contract with a key function, and "${contract.type}" ${has}: ` +
      'every repeated request would start a new operation. Give defineJob a key of the payload and a duplicateWindow.',
  )
}

/** @throws CHOKAQ_CONFIG_INVALID for an unknown option, or a callback that is missing or no function */
export function checkOptions(
  receiver: string,
  options: object,
  functions: { readonly required: readonly string[]; readonly optional: readonly string[] },
  others: readonly string[],
): void {
  const { required, optional } = functions
  const unknown = unknownKeyProblem(options, [...required, ...optional, ...others], receiver)
  if (unknown !== undefined) misconfigured(unknown)
  const given = options as Readonly<Record<string, unknown>>
  for (const name of [...required, ...optional]) {
    if (typeof given[name] === 'function') continue
    if (given[name] !== undefined || required.includes(name))
      misconfigured(`${name} of ${receiver} must be a function.`)
  }
}

export function misconfigured(problem: string): never {
  throw new ChokaQError('CHOKAQ_CONFIG_INVALID', { problem })
}
