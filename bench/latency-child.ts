/** The other process of the latency lines: an idle worker that tells when a handler starts, and what idling costs. */
import { open, startListener } from './engine.ts'

async function main(path: string): Promise<void> {
  const chokaq = open(path)
  const worker = await startListener(chokaq, (atNs) => process.send?.({ kind: 'started', at: String(atNs) }))
  process.on('message', (message: { readonly kind: string }) => {
    if (message.kind === 'cpu') {
      const { user, system } = process.cpuUsage()
      process.send?.({ kind: 'cpu', microseconds: user + system })
    }
    if (message.kind === 'stop') {
      void worker
        .stop()
        .then(() => chokaq.close())
        .then(() => {
          process.disconnect()
        })
    }
  })
  process.send?.({ kind: 'ready' })
}

void main(process.argv[2] ?? '')
