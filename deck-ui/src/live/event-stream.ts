/**
 * The text of a `text/event-stream`, cut into events. Read by hand because EventSource tells neither the status of a
 * refused stream nor that comments still come, and both decide what the page says.
 */
export interface StreamReader {
  /** Feeds a piece of text, whole lines or not; answers the data of the events that are complete by now. */
  push(text: string): readonly string[]
}

export function createStreamReader(): StreamReader {
  let rest = ''
  let data: string[] = []

  const takeLine = (line: string): string | undefined => {
    if (line === '') {
      if (data.length === 0) return undefined
      const event = data.join('\n')
      data = []
      return event
    }
    // Comments, event names and ids mean nothing here: the data says its own kind.
    if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''))
    return undefined
  }

  return {
    push(text) {
      const lines = (rest + text).split(/\r\n|\n/)
      rest = lines.pop() ?? ''
      return lines.flatMap((line) => takeLine(line) ?? [])
    },
  }
}
