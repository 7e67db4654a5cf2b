/**
 * What telemetry costs a drain of no-op keyed jobs: no `instrument()`, with it and no SDK, and with an SDK that keeps
 * metrics and drops every span. Interleaved, medians:
 *
 *   node --conditions=chokaq-source --import jiti/register bench/telemetry.ts [--quick]
 */
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics'
import { BasicTracerProvider, type SpanProcessor } from '@opentelemetry/sdk-trace-base'
import { instrument, type InstrumentOptions } from 'chokaq/otel'
import { drain, fill, open } from './engine.ts'
import { inTurn, rateOf, withDatabase } from './measure.ts'

class IdleReader extends MetricReader {
  protected override onForceFlush = (): Promise<void> => Promise.resolve()
  protected override onShutdown = (): Promise<void> => Promise.resolve()
}

const dropped: SpanProcessor = {
  onStart: () => undefined,
  onEnd: () => undefined,
  forceFlush: () => Promise.resolve(),
  shutdown: () => Promise.resolve(),
}

/** Jobs a second, enqueued and drained under the same telemetry. */
function drained(count: number, options: InstrumentOptions | undefined): Promise<number> {
  return withDatabase(async (path) => {
    const chokaq = open(path)
    const stop = options === undefined ? undefined : instrument(chokaq, options)
    await fill(chokaq, 'keyed', count)
    const rate = await rateOf(count, () => drain(chokaq, 'keyed', count))
    stop?.()
    await chokaq.close()
    return rate
  })
}

async function main(args: readonly string[]): Promise<void> {
  const [rounds, count] = args.includes('--quick') ? [3, 5_000] : [9, 20_000]
  const meterProvider = new MeterProvider({ readers: [new IdleReader()] })
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [dropped] })
  await drained(count, undefined)
  const [none = 0, without = 0, metrics = 0, both = 0] = await inTurn(rounds, [
    () => drained(count, undefined),
    () => drained(count, {}),
    () => drained(count, { meterProvider }),
    () => drained(count, { meterProvider, tracerProvider }),
  ])
  const lines = { 'no instrument()': none, 'no SDK': without, metrics, 'metrics and spans': both }
  for (const [name, rate] of Object.entries(lines)) {
    process.stdout.write(
      `${name.padEnd(20)} ${Math.round(rate).toLocaleString('en').padStart(8)}/s  ${(rate / none).toFixed(2)}\n`,
    )
  }
}

void main(process.argv.slice(2))
