import { describe, expect, it } from 'vitest'
import { printLetter } from '../../examples/manual-review/contract.ts'
import { printHandler, type Printer } from '../../examples/manual-review/handler.ts'
import { decideByTray, main } from '../../examples/manual-review/main.ts'
import { storages } from './storages.ts'
import { never, TwoProcesses } from './two-processes.ts'

describe.each(storages)('examples/manual-review on $name', ({ open }) => {
  it('prints what happened', async () => {
    const { storage, runtime } = open()
    const lines: string[] = []
    await main(storage, (line) => lines.push(line), runtime)
    expect(lines.toSorted()).toEqual([
      '2 letters wait for a person',
      'a duplicate is told: already-in-review',
      'in the tray: letter-1, letter-2',
      'letter-1: it is in the tray, adopted',
      'letter-2: it is not there, printed again',
    ])
  })

  it('does not print again by itself after a crash in the middle of the print', async () => {
    const both = new TwoProcesses(open())
    const { id } = await both.chokaq.enqueue(printLetter, { letterId: 'letter-1', text: 'letter-1' })
    const tray: string[] = []
    const dies: Printer = {
      isReady: async () => true,
      print(text) {
        tray.push(text)
        return never()
      },
    }
    const works: Printer = { ...dies, print: async (text) => ({ sheet: tray.push(text) }) }
    await both.crash([printHandler(dies)], () => tray.length > 0)
    await both.goOn([printHandler(works)])
    expect(await both.chokaq.reviews.list()).toMatchObject([{ id, reason: 'Interrupted', key: 'letter-1' }])
    await decideByTray(both.chokaq, tray, () => undefined)
    await both.goOn([printHandler(works)])
    expect(tray).toEqual(['letter-1'])
    expect(await both.chokaq.jobs.get(id)).toMatchObject({ state: 'completed', result: '{"sheet":1}' })
    await both.close()
  })

  it('retries what certainly was not printed', async () => {
    const both = new TwoProcesses(open())
    const { id } = await both.chokaq.enqueue(printLetter, { letterId: 'letter-1', text: 'letter-1' })
    let asked = 0
    const tray: string[] = []
    const offAtFirst: Printer = {
      isReady: async () => (asked += 1) > 1,
      print: async (text) => ({ sheet: tray.push(text) }),
    }
    await both.goOn([printHandler(offAtFirst)])
    expect([asked, tray]).toEqual([2, ['letter-1']])
    expect(await both.chokaq.jobs.get(id)).toMatchObject({ state: 'completed' })
    await both.close()
  })
})
