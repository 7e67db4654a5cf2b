/** What a user's file declares: handlers and worker settings, or contracts. */
import type { ClientOptions } from '../core/config.ts'
import { isJob, type Job } from '../core/contract.ts'
import { quoted } from '../core/describe-value.ts'
import { ChokaQError } from '../core/errors.ts'
import { isHandler, type Handler } from '../core/handler.ts'
import type { HealthOptions } from '../engine/health.ts'
import { CliError } from './cli-error.ts'
import { loadFile, type LoadedModule } from './load-file.ts'

export interface WorkFile {
  readonly handlers: readonly Handler[]
  /** Options of the worker, checked by whoever uses them. */
  readonly worker: Readonly<Record<string, unknown>>
  readonly client: ClientOptions
  /** Limits of `/health/ready`, checked by whoever uses them. */
  readonly health: HealthOptions
}

/** `export const handlers`, and optionally `worker`, `client` and `health`; or the same as members of the default export. */
export async function loadWorkFile(file: string, cwd: string): Promise<WorkFile> {
  const loaded = await loadFile(file, cwd)
  const source = sourceOf(loaded)
  const { handlers } = source
  const refuse = (problem: string): never => {
    throw new CliError('CHOKAQ_CLI_FILE_INVALID', `${file} ${problem}`)
  }
  if (!Array.isArray(handlers)) {
    return refuse(
      `exports no array "handlers". Export what defineHandler returned: export const handlers = [resize]. Found: ${exportsText(loaded)}.`,
    )
  }
  const list = handlers as readonly unknown[]
  const wrong = list.findIndex((handler) => !isHandler(handler))
  if (wrong >= 0) return refuse(`has no handler at handlers[${wrong}]: put in what defineHandler returned.`)
  if (list.length === 0) return refuse('exports an empty array "handlers": there is nothing to do.')
  const worker = settings(source['worker'], `${file}: "worker"`)
  if (!isArrayOf(worker['queues'], 'string')) return refuse('has worker.queues that are no array of names.')
  if (!isArrayOf(worker['middleware'], 'function'))
    return refuse('has worker.middleware that is no array of functions.')
  return {
    handlers: list as readonly Handler[],
    worker,
    client: settings(source['client'], `${file}: "client"`),
    health: settings(source['health'], `${file}: "health"`),
  }
}

function sourceOf(loaded: LoadedModule): LoadedModule {
  if (loaded['handlers'] !== undefined) return loaded
  const standard = loaded['default']
  if (Array.isArray(standard)) return { ...loaded, handlers: standard }
  return typeof standard === 'object' && standard !== null ? (standard as LoadedModule) : loaded
}

function settings(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (value === undefined) return {}
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Readonly<Record<string, unknown>>
  throw new CliError('CHOKAQ_CLI_FILE_INVALID', `${what} must be an object of options.`)
}

function isArrayOf(value: unknown, kind: 'string' | 'function'): boolean {
  return value === undefined || (Array.isArray(value) && value.every((member) => typeof member === kind))
}

function exportsText(loaded: LoadedModule): string {
  const names = Object.keys(loaded)
  return names.length === 0 ? 'nothing' : names.slice(0, 20).join(', ')
}

/** Every contract a file exports: by itself, in an array or object, or as the contract of a handler. */
export async function loadJobs(file: string, cwd: string): Promise<ReadonlyMap<string, Job>> {
  const loaded = await loadFile(file, cwd)
  const jobs = new Map<string, Job>()
  const add = (job: Job): void => {
    const known = jobs.get(job.type)
    if (known !== undefined && known !== job) {
      throw new CliError('CHOKAQ_CLI_FILE_INVALID', `${file} exports two contracts of type ${quoted(job.type)}.`)
    }
    jobs.set(job.type, job)
  }
  const collect = (value: unknown, depth: number): void => {
    if (isJob(value)) add(value)
    else if (isHandler(value)) add(value.job)
    else if (depth > 0 && isPlain(value)) {
      for (const member of Object.values(value)) collect(member, depth - 1)
    }
  }
  for (const value of Object.values(loaded)) collect(value, 2)
  if (jobs.size > 0) return jobs
  throw new CliError(
    'CHOKAQ_CLI_FILE_INVALID',
    `${file} exports no contract. Export what defineJob returned. Found: ${exportsText(loaded)}.`,
  )
}

/** An object of another class may do anything when its members are read. */
function isPlain(value: unknown): value is object {
  if (Array.isArray(value)) return true
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

export function jobOfType(jobs: ReadonlyMap<string, Job>, type: string): Job {
  const job = jobs.get(type)
  if (job !== undefined) return job
  throw new ChokaQError('CHOKAQ_UNKNOWN_TYPE', { type, known: [...jobs.keys()] })
}
