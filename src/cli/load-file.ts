/**
 * Loads a file of the user, TypeScript or JavaScript. What it imports from 'chokaq' is the copy that runs here, so that a
 * global installation works with a project that has its own. Where two copies meet all the same (a compiled package
 * that brings its own chokaq), contracts, handlers and errors are still recognised: they carry brands from Symbol.for,
 * not classes.
 */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createJiti } from 'jiti'
import { describeFailure, failureText } from '../core/failure.ts'
import { CliError } from './cli-error.ts'

export type LoadedModule = Readonly<Record<string, unknown>>

export async function loadFile(file: string, cwd: string): Promise<LoadedModule> {
  const path = resolve(cwd, file)
  if (!existsSync(path)) throw new CliError('CHOKAQ_CLI_FILE_MISSING', `There is no file ${path}.`)
  try {
    const jiti = createJiti(pathToFileURL(join(cwd, 'chokaq')).href, {
      virtualModules: await ownModules(),
      tsconfigPaths: true,
      sourceMaps: true,
    })
    const loaded = await jiti.import<unknown>(path)
    return isObject(loaded) ? loaded : { default: loaded }
  } catch (cause) {
    throw new CliError('CHOKAQ_CLI_FILE_INVALID', `${file} cannot be loaded: ${failureText(describeFailure(cause))}`, {
      cause,
    })
  }
}

async function ownModules(): Promise<Record<string, unknown>> {
  const [main, worker, sqlite] = await Promise.all([
    import('../index.ts'),
    import('../worker.ts'),
    import('../storage/sqlite/index.ts'),
  ])
  return { chokaq: main, 'chokaq/worker': worker, 'chokaq/sqlite': sqlite }
}

function isObject(value: unknown): value is LoadedModule {
  return (typeof value === 'object' || typeof value === 'function') && value !== null
}
