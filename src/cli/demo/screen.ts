/** What the demo prints: a bar that stays in place on a terminal, plain lines elsewhere, one JSON text for machines. */
import type { CliIo } from '../io.ts'
import { jsonLine, severalLines } from '../terminal-text.ts'

const barWidth = 24
/** Between two progress lines where there is no terminal to draw on. */
const lineEveryMs = 2_000

export class Screen {
  readonly #io: Pick<CliIo, 'stdout' | 'stderr'>
  readonly #json: boolean
  #isBarShown = false
  #lastLineAtMs = 0

  constructor(io: Pick<CliIo, 'stdout' | 'stderr'>, json: boolean) {
    this.#io = io
    this.#json = json
  }

  line(text: string): void {
    if (this.#json) return
    this.#clearBar()
    this.#io.stdout.write(`${severalLines(text)}\n`)
  }

  progress(done: number, text: string): void {
    if (this.#json) return
    if (this.#io.stdout.isTTY === true) {
      const filled = Math.round(done * barWidth)
      this.#io.stdout.write(`\r\u001b[2K${'█'.repeat(filled)}${'░'.repeat(barWidth - filled)} ${text}`)
      this.#isBarShown = true
    } else if (Date.now() - this.#lastLineAtMs >= lineEveryMs) {
      this.#lastLineAtMs = Date.now()
      this.line(`${String(Math.round(done * 100)).padStart(3)} %  ${text}`)
    }
  }

  /** The result: `value` for machines, `text` for people. */
  result(value: unknown, text: string): void {
    if (this.#json) this.#io.stdout.write(`${jsonLine(value)}\n`)
    else this.line(text)
  }

  #clearBar(): void {
    if (this.#isBarShown) this.#io.stdout.write('\r\u001b[2K')
    this.#isBarShown = false
  }
}
