/** `chokaq demo`: the whole promise in one command, with real webhooks, real processes and real kills. */
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { Option, type Command } from 'commander'
import { workerDefaults as standard } from '../../core/config.ts'
import { formatMs } from '../../core/duration.ts'
import { wholeNumber, type CommandHost } from '../command-host.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { minDeliveries } from './deliveries.ts'
import type { ProviderSetup, WorkerSetup } from './messages.ts'
import { runProviderProcess } from './provider/process.ts'
import { reportText, verdictText } from './report.ts'
import { Run } from './run.ts'
import { Screen } from './screen.ts'
import { showDeck } from './show-deck.ts'
import { concurrency, crashBudget, defaultDeliveries, leaseTimes, maxDeliveries, plannedKills } from './settings.ts'
import { placeOf, removeShop, serverPlace } from './shop.ts'
import { runWorkerProcess } from './worker-process.ts'

interface DemoFlags {
  readonly seed: number
  readonly deliveries: number
  readonly protection: boolean
  readonly json?: boolean
  readonly deck?: boolean
  readonly db?: string
  readonly role?: 'worker' | 'provider'
  readonly setup?: string
}

const maxSeed = 2 ** 31 - 1

const help = `
Two workers take jobs that GitHub webhooks became, and charge customers at three payment providers that fail, hang up and
answer late. One takes idempotency keys, one can only be asked what it did (and its answers lag), one does neither: what is
in doubt there is decided by a person, whom the demo plays. One of the workers is killed (SIGKILL) again and again, always
while it works. At the end the providers' own ledger is compared with what was delivered.

The seed decides what is sent, in which order, and what the provider does to each request. When exactly a kill strikes
differs from run to run.

It ends with 0 if every delivery is accounted for and every payment attempt was charged exactly once. With
--no-protection the same deliveries run without keys and with a fresh provider key for each attempt: it ends with 0 if
that shows double charges, and with 1 if it shows none.
`

export function registerDemo(program: Command, host: CommandHost): void {
  program
    .command('demo')
    .description('kill workers in the middle of charges, and count what customers paid')
    .option('--seed <number>', 'repeats the same deliveries and the same faults', wholeNumber(0, maxSeed), 1)
    .option(
      '--deliveries <count>',
      'HTTP requests to send, a third of them redeliveries',
      wholeNumber(minDeliveries, maxDeliveries),
      defaultDeliveries,
    )
    .option('--db <url>', 'a PostgreSQL server instead of a file; the demo makes a schema of its own there')
    .option('--no-protection', 'leave out the keys and the answers, and see what that costs')
    .option('--deck', 'at the end, serve the Deck on what the run left, until SIGINT or SIGTERM')
    .option('--json', 'print one JSON text at the end and nothing else')
    .addOption(new Option('--role <role>').choices(['worker', 'provider']).hideHelp())
    .addOption(new Option('--setup <json>').hideHelp())
    .addHelpText('after', help)
    .action((flags: DemoFlags) =>
      host.run(flags, () => (flags.role === undefined ? demo(flags, host) : play(flags, host))),
    )
}

/** A process that a run started. */
async function play({ role, setup = '{}' }: DemoFlags, { io }: CommandHost): Promise<ExitCode> {
  if (role === 'worker') {
    const parsed = JSON.parse(setup) as WorkerSetup
    await runWorkerProcess(parsed, placeOf(parsed.shop, io.env))
  } else await runProviderProcess(JSON.parse(setup) as ProviderSetup)
  return exitCodes.ok
}

async function demo(flags: DemoFlags, host: CommandHost): Promise<ExitCode> {
  const screen = new Screen(host.io, flags.json === true)
  const isProtected = flags.protection
  const { seed, deliveries } = flags
  const shop =
    flags.db === undefined ? {} : { shop: serverPlace(flags.db, `${seed}_${randomBytes(4).toString('hex')}`) }
  const run = new Run({ seed, requestCount: deliveries, isProtected, ...shop }, screen)
  let interrupted = false
  const forgetSignals = host.io.onSignal(() => {
    interrupted = true
    run.stop(new InterruptedRun())
  })
  showPlan(screen, run, flags)
  let isGood = false
  try {
    const { account, kills, durationMs } = await run.execute()
    isGood = isProtected ? account.problems.length === 0 : account.doubleCount > 0
    const repeat = `chokaq demo --seed ${flags.seed} --deliveries ${flags.deliveries}${isProtected ? ' --no-protection' : ''}`
    screen.result(
      { seed: flags.seed, isProtected, isGood, durationMs, kills, ...account },
      [
        '',
        reportText(account, kills, isProtected),
        '',
        verdictText(account, isProtected, repeat),
        `It took ${formatMs(durationMs)}.`,
      ].join('\n'),
    )
    if (flags.deck === true) {
      forgetSignals()
      await showDeck(run.shop, screen, host.io)
    }
    return isGood ? exitCodes.ok : exitCodes.failure
  } catch (error) {
    if (!(error instanceof InterruptedRun)) throw error
    return exitCodes.interrupted
  } finally {
    forgetSignals()
    if (isGood || interrupted) {
      rmSync(run.folder, { recursive: true, force: true })
      await removeShop(run.shop)
    } else screen.line(keptText(run))
  }
}

function keptText({ folder, shop }: Run): string {
  if (shop.kind === 'file') return `Database, ledger and logs are kept in ${folder}`
  return `Ledger and logs are kept in ${folder}, the tables in the schema ${shop.schema}`
}

class InterruptedRun extends Error {
  override readonly name = 'InterruptedRun'
}

function showPlan(screen: Screen, { plan }: Run, { seed, deliveries, protection }: DemoFlags): void {
  const { heartbeat, deadAfter, fenceAfter, sweep } = leaseTimes
  screen.line(
    [
      `seed ${seed}: ${deliveries} signed HTTP requests, ${plan.redeliveryCount} of them redeliveries, from ` +
        `${plan.exampleCount} recorded GitHub webhooks of ${plan.kindCount} kinds`,
      `2 workers with ${concurrency} handlers each; one of them is killed ${plannedKills} times (crash budget ${crashBudget})`,
      `times, scaled down: beat every ${formatMs(heartbeat)}, fenced after ${formatMs(fenceAfter)}, dead after ` +
        `${formatMs(deadAfter)} of silence (production: ${formatMs(standard.heartbeatMs)}, ` +
        `${formatMs(standard.fenceAfterMs)}, ${formatMs(standard.deadAfterMs)})`,
      `a process that is gone from this machine is noticed with the next sweep, every ${formatMs(sweep)}`,
      'three providers: card takes keys; bank takes none and can be asked, its answers lag; voucher does neither',
      protection
        ? 'protection: a business key for each job, and each charge is an effect: an intent before it, an outcome after'
        : 'NO PROTECTION: no business key, and a fresh provider key for each attempt',
      '',
    ].join('\n'),
  )
}
