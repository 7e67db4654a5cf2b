/** Processes that are alive until a test says that they are gone. */
import type { ProcessIdentity, ProcessProbe } from '../core/runtime.ts'

export interface FakeProcesses extends ProcessProbe {
  /** From now on every probe says that this process is gone. */
  markGone(identity: ProcessIdentity): void
  /** The probe of another process of the same world. */
  seenFrom(identity: Partial<ProcessIdentity>): ProcessProbe
}

const firstProcess: ProcessIdentity = {
  host: 'host-1',
  bootId: 'boot-1',
  pidNamespace: 'namespace-1',
  pid: 1000,
  startTime: '1',
}

export function createFakeProcesses(): FakeProcesses {
  const gone = new Set<string>()
  const isGone = (identity: ProcessIdentity): boolean => gone.has(nameOf(identity))
  return {
    self: () => firstProcess,
    isGone,
    markGone: (identity) => void gone.add(nameOf(identity)),
    seenFrom: (identity) => ({ self: () => ({ ...firstProcess, ...identity }), isGone }),
  }
}

function nameOf(identity: ProcessIdentity): string {
  return JSON.stringify([identity.host, identity.bootId, identity.pidNamespace, identity.pid, identity.startTime])
}
