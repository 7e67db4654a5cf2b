/**
 * A storage that fails when a test says so: before a call reaches the database (nothing was written), after it (the
 * reply is lost), or never answering. The engine cannot tell the three apart, and must be right in all of them.
 */
import { ChokaQError } from '../core/errors.ts'
import type { Inspector, InspectorReader, ReaderOptions } from '../core/inspector.ts'
import type { Runtime } from '../core/runtime.ts'
import type { Storage, StorageDriver } from '../core/storage.ts'

/** Methods of the driver; those of the inspector as 'inspector.get'. */
export type StorageCall = Exclude<keyof StorageDriver, 'capabilities' | 'inspector'> | `inspector.${keyof Inspector}`

/** What happens to one call. `before`: it never arrives. `after`: it is done and its reply is lost. */
export type StorageFault = 'none' | 'before' | 'after' | 'hang' | 'hang-after'

export type FaultPlan = (call: StorageCall) => StorageFault

const untouched: ReadonlySet<string> = new Set([
  'capabilities',
  'inspector',
  'onWake',
  'enqueueSync',
  'completeSync',
  'transactionSync',
])

/** Every asynchronous call asks `plan` what becomes of it. */
export function faultyStorage(storage: Storage, plan: FaultPlan): Storage {
  return { ...storage, open: (runtime: Runtime) => faultyDriver(storage.open(runtime), plan) }
}

export function faultyDriver(driver: StorageDriver, plan: FaultPlan): StorageDriver {
  const inspector = withFaults(driver.inspector, new Set(), (name) => plan(`inspector.${name as keyof Inspector}`))
  const faulty = withFaults(driver, untouched, (name) => plan(name as Exclude<StorageCall, `inspector.${string}`>))
  const openReader = (options: ReaderOptions): InspectorReader | undefined => {
    const reader = driver.openReader?.(options)
    if (reader === undefined) return undefined
    const reads = withFaults(reader.reads, new Set(), (name) => plan(`inspector.${name as keyof Inspector}`))
    return { reads, close: () => reader.close() }
  }
  return new Proxy(faulty, {
    get(target, name) {
      if (name === 'inspector') return inspector
      return name === 'openReader' ? openReader : (Reflect.get(target, name, target) as unknown)
    },
  })
}

function withFaults<T extends object>(
  target: T,
  except: ReadonlySet<string>,
  faultOf: (name: string) => StorageFault,
): T {
  return new Proxy(target, {
    get(of, name) {
      const member: unknown = Reflect.get(of, name, of)
      if (typeof member !== 'function' || typeof name !== 'string') return member
      const method = member.bind(of) as (...args: unknown[]) => unknown
      if (except.has(name)) return method
      return (...args: unknown[]) => suffer(name, faultOf(name), () => method(...args) as Promise<unknown>)
    },
  })
}

async function suffer(name: string, fault: StorageFault, call: () => Promise<unknown>): Promise<unknown> {
  switch (fault) {
    case 'none':
      return call()
    case 'before':
      throw lost(name)
    case 'after':
      await call()
      throw lost(name)
    case 'hang-after':
      await call()
      return new Promise(() => undefined)
    default:
      return new Promise(() => undefined)
  }
}

function lost(name: string): ChokaQError {
  return new ChokaQError('CHOKAQ_STORAGE_FAILED', { problem: `the test cut the connection at ${name}` })
}
