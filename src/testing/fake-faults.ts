/** Fault points that a test arms: each names a moment at which a process may die or a call may fail. */
import type { FaultPoint, FaultPoints } from '../core/runtime.ts'

export interface FakeFaults extends FaultPoints {
  /** Every point reached so far, in order. */
  readonly reached: readonly FaultPoint[]
  /** Runs `action` (it usually throws) the next `times` times the point is reached. */
  failAt(point: FaultPoint, times: number, action: () => void): void
  /** Disarms every point and forgets what was reached. */
  clear(): void
}

interface ArmedFault {
  left: number
  readonly action: () => void
}

export function createFakeFaults(): FakeFaults {
  const reached: FaultPoint[] = []
  const armed = new Map<FaultPoint, ArmedFault[]>()
  return {
    reached,
    reach(point) {
      reached.push(point)
      const fault = armed.get(point)?.find((candidate) => candidate.left > 0)
      if (fault === undefined) return
      fault.left -= 1
      fault.action()
    },
    failAt(point, times, action) {
      armed.set(point, [...(armed.get(point) ?? []), { left: times, action }])
    },
    clear() {
      reached.length = 0
      armed.clear()
    },
  }
}
