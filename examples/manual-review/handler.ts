import { defineHandler, NotExecuted, type Handler } from 'chokaq/worker'
import { printLetter } from './contract.ts'

/** A printer takes no key, and cannot be asked what it printed. */
export interface Printer {
  isReady(): Promise<boolean>
  print(text: string): Promise<{ sheet: number }>
}

export function printHandler(printer: Printer): Handler {
  return defineHandler(printLetter, {
    sideEffects: 'unguarded',
    // Every abnormal end waits for a person; the engine never prints a letter again by itself.
    whenInterrupted: 'review',
    async run(p) {
      // Nothing has been printed yet, and the handler can prove it: this is retried as usual.
      if (!(await printer.isReady())) throw new NotExecuted('the printer is off')
      return printer.print(p.text)
    },
  })
}
