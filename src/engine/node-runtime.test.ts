import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { validate, version } from 'uuid'
import { createNodeRuntime, newId } from './node-runtime.ts'

const runtime = createNodeRuntime()
const hasProc = existsSync('/proc/self/stat')

describe('the process probe', () => {
  const self = runtime.processes.self()

  test('knows itself, and that it is not gone', () => {
    expect(self.pid).toBe(process.pid)
    expect(runtime.processes.isGone(self)).toBe(false)
  })

  // Elsewhere nothing can be read, and then nobody is ever said to be gone.
  test.runIf(hasProc)('tells a gone process, and another one that has its number by now', async () => {
    const child = spawn(process.execPath, ['-e', ''])
    const { pid } = child
    await once(child, 'exit')
    expect(runtime.processes.isGone({ ...self, pid: pid ?? 0 })).toBe(true)
    // The same number, started at another time.
    expect(runtime.processes.isGone({ ...self, startTime: '1' })).toBe(true)
  })

  test.each([{ host: 'elsewhere' }, { bootId: 'other' }, { pidNamespace: 'pid:[1]' }])(
    'says nothing of a process of another world: %j',
    (other) => {
      expect(runtime.processes.isGone({ ...self, pid: 2 ** 30, ...other })).toBe(false)
    },
  )

  test.each(['bootId', 'pidNamespace', 'startTime'] as const)('says nothing where %s could not be read', (field) => {
    expect(runtime.processes.isGone({ ...self, pid: 2 ** 30, [field]: undefined })).toBe(false)
  })

  test('says nothing of a number that is none', () => {
    for (const pid of [Number.NaN, 1.5]) expect(runtime.processes.isGone({ ...self, pid })).toBe(false)
  })
})

describe('the scheduler', () => {
  test('clamps a delay that would overflow a timer and fire at once', async () => {
    let fired = false
    const timer = runtime.scheduler.after(2 ** 31 + 5, () => (fired = true))
    await new Promise<void>((resolve) => {
      runtime.scheduler.after(0, resolve)
    })
    expect(fired).toBe(false)
    timer.cancel()
  })

  test('takes a negative delay as none, and cancels', async () => {
    const order: string[] = []
    runtime.scheduler.after(-5, () => void order.push('timer'))
    runtime.scheduler.after(0, () => void order.push('cancelled')).cancel()
    runtime.scheduler.defer(() => void order.push('deferred'))
    await new Promise<void>((resolve) => {
      runtime.scheduler.after(2, resolve)
    })
    expect(order.sort()).toEqual(['deferred', 'timer'])
  })
})

describe('ids and hashes', () => {
  test('ids are UUIDs of version 7 that sort by their making', () => {
    const ids = Array.from({ length: 1_000 }, () => runtime.newId())
    expect(ids[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect([...ids].sort()).toEqual(ids)
    expect(new Set(ids).size).toBe(1_000)
  })

  test('sha256 is that of the UTF-8 text', () => {
    expect(runtime.sha256('é')).toBe('4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c')
    expect(runtime.byteLength('é🚀')).toBe(6)
  })

  test('parts can be replaced', () => {
    expect(createNodeRuntime({ newId: () => 'x' }).newId()).toBe('x')
  })
})

/** More than are drawn at once. */
const idCount = 1_000
const timeOf = (id: string): number => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)

describe('a new id', () => {
  test('is a UUID of version 7 with the time of its making', () => {
    const nowMs = Date.now() + 1_000
    const id = newId(nowMs)
    expect([validate(id), version(id), timeOf(id)]).toEqual([true, 7, nowMs])
  })

  test('sorts behind those before it, within a millisecond too, and is like none of them', () => {
    const nowMs = Date.now() + 2_000
    const ids = Array.from({ length: idCount }, (_, n) => newId(nowMs + Math.floor(n / 300)))
    expect(ids).toEqual([...ids].sort())
    expect(new Set(ids).size).toBe(idCount)
  })

  test('sorts behind those before it when the clock steps back', () => {
    const nowMs = Date.now() + 3_000
    const ids = [newId(nowMs), newId(nowMs - 60_000), newId(nowMs - 1), newId(nowMs + 1)]
    expect(ids).toEqual([...ids].sort())
    expect(timeOf(ids[1] ?? '')).toBe(nowMs)
  })

  test('shares no random part with its neighbours', () => {
    const nowMs = Date.now() + 4_000
    expect(new Set(Array.from({ length: idCount }, () => newId(nowMs).slice(-10))).size).toBe(idCount)
  })
})
