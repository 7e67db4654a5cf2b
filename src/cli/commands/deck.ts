import type { Command } from 'commander'
import type { Job } from '../../core/contract.ts'
import { describeFailure, failureText } from '../../core/failure.ts'
import { createDeck, type DeckOptions } from '../../deck/index.ts'
import { isLoopbackAddress } from '../../deck/origin.ts'
import { CliError } from '../cli-error.ts'
import { collected, wholeNumber, withDatabase, type CommandHost, type DatabaseFlags } from '../command-host.ts'
import { DeckServer } from '../deck-server.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import type { CliIo } from '../io.ts'
import type { Output } from '../output.ts'
import { withClient } from '../storage-location.ts'
import { loadJobs } from '../user-file.ts'

interface Flags extends DatabaseFlags {
  readonly port: number
  readonly host: string
  readonly token?: string
  readonly allowHost?: readonly string[]
  readonly redact?: readonly string[]
  readonly readOnly?: boolean
  readonly jobs?: string
}

export const tokenVariable = 'CHOKAQ_DECK_TOKEN'
const defaultPort = 4_680

export function registerDeck(program: Command, host: CommandHost): void {
  withDatabase(program.command('deck'))
    .description('serve the Deck, the page to see and repair jobs with, until SIGINT or SIGTERM')
    .option('--port <number>', 'where to listen; 0 takes any port that is free', wholeNumber(0, 65_535), defaultPort)
    .option('--host <address>', 'at which address; another than 127.0.0.1 or ::1 needs a token', '127.0.0.1')
    .option(
      '--token <text>',
      `what lets people in, as admin (default: $${tokenVariable}, which no list of processes shows)`,
    )
    .option('--allow-host <name>', 'a host name it is reached by; may be repeated', collected)
    .option(
      '--redact <path>',
      "a path of payloads to hide, such as card.number or '**.email'; may be repeated",
      collected,
    )
    .option('--read-only', 'nobody can change anything')
    .option('--jobs <file>', 'a file that exports contracts: what is keyed can then be edited')
    .action((flags: Flags) => host.run(flags, (out) => serve(host.io, out, flags)))
}

async function serve(io: CliIo, out: Output, flags: Flags): Promise<ExitCode> {
  const token = tokenOf(io, flags)
  const jobs = flags.jobs === undefined ? [] : [...(await loadJobs(flags.jobs, io.cwd)).values()]
  return withClient(io, flags, 'existing', async (chokaq) => {
    const onError = (error: unknown): void => {
      out.warn(failureText(describeFailure(error)))
    }
    const deck = createDeck({ chokaq, onError, ...optionsOf(io, flags, token, jobs) })
    try {
      const server = await DeckServer.open(flags.host, flags.port, deck, onError)
      try {
        const { url } = server
        out.result({ url, readOnly: flags.readOnly === true }, `the Deck is at ${url}`)
        await stopped(io)
      } finally {
        await server.close()
      }
    } finally {
      await deck.close()
    }
    return exitCodes.ok
  })
}

/** An empty variable is no token: `CHOKAQ_DECK_TOKEN=` in some file must not open the door. */
function tokenOf(io: CliIo, { token, host }: Flags): string | undefined {
  const given = token ?? io.env[tokenVariable]
  if (given !== undefined && given !== '') return given
  if (isLoopbackAddress(host) || host === 'localhost') return undefined
  throw new CliError(
    'CHOKAQ_CLI_USAGE',
    `At ${host} others can reach the Deck, so it needs a token: ${tokenVariable}=$(openssl rand -base64 24) chokaq deck --host ${host}`,
  )
}

function optionsOf(
  io: CliIo,
  { allowHost, redact, readOnly }: Flags,
  token: string | undefined,
  jobs: readonly Job[],
): Omit<DeckOptions, 'chokaq'> {
  return {
    localActor: io.userName,
    jobs,
    ...(token === undefined ? {} : { auth: { tokens: [{ token, actor: io.userName, role: 'admin' as const }] } }),
    ...(allowHost === undefined ? {} : { allowedHosts: allowHost }),
    ...(redact === undefined ? {} : { redact }),
    ...(readOnly === undefined ? {} : { readOnly }),
  }
}

function stopped(io: CliIo): Promise<void> {
  return new Promise((resolve) => {
    const stopListening = io.onSignal(() => {
      stopListening()
      resolve()
    })
  })
}
