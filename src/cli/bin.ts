#!/usr/bin/env node
import { processIo } from './process-io.ts'
import { runCli } from './program.ts'

const flushed = (stream: NodeJS.WriteStream): Promise<void> =>
  new Promise((resolve) => {
    stream.write('', () => {
      resolve()
    })
  })

// A file of the user may have left handles open (a pool, an interval): the end of the command is the end of the process.
void runCli(process.argv.slice(2), processIo()).then(async (exitCode) => {
  await Promise.all([flushed(process.stdout), flushed(process.stderr)])
  process.exit(exitCode)
})
