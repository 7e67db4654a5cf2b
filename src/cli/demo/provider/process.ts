/** The provider as a process of its own. It outlives every kill of the demo, as the real one would. */
import { appendFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { tellParent, untilStopped } from '../child-side.ts'
import type { ProviderSetup } from '../messages.ts'
import { behaviourOf, readLagMs } from './behaviour.ts'
import { Ledger } from './ledger.ts'
import { createProvider } from './server.ts'

export async function runProviderProcess(setup: ProviderSetup): Promise<void> {
  const ledger = Ledger.open(setup.ledger)
  const server = createProvider({
    ledger,
    behaviour: (paymentAttemptId, nth, provider) => behaviourOf(setup.seed, paymentAttemptId, nth, provider),
    readLagMs: (paymentAttemptId) => readLagMs(setup.seed, paymentAttemptId),
    wait: (ms) => wait(ms),
    onRequestEnd: (record) => {
      appendFileSync(setup.requests, `${JSON.stringify(record)}\n`)
    },
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  tellParent({ kind: 'listening', port: (server.address() as AddressInfo).port })
  await untilStopped()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  ledger.close()
}
