import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { cliErrorCodes } from '../../src/cli/cli-error.ts'
import { CommandHost } from '../../src/cli/command-host.ts'
import { exitCodeOf, exitCodes, exitCodeTexts } from '../../src/cli/exit-codes.ts'
import { buildProgram } from '../../src/cli/program.ts'
import { ChokaQError } from '../../src/core/errors.ts'
import { cli, fakeIo } from './fake-io.ts'

const page = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8')

function section(title: string): string {
  return page.split(/^## /m).find((each) => each.startsWith(title)) ?? ''
}

function firstColumn(text: string): readonly string[] {
  return [...text.matchAll(/^\| `?([\w-]+)`? +\|/gm)]
    .map(([, cell]) => cell ?? '')
    .filter((cell) => cell !== 'Code' && !cell.startsWith('-'))
}

/** Without the ones that commander adds. */
function leaves(command: Command): readonly Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leaves)
}

const program = buildProgram(new CommandHost(fakeIo({ cwd: '.' }).io))

describe('docs/cli.md', () => {
  it('has the table of exit codes that the code and --help have', async () => {
    const rows = [...section('Exit codes').matchAll(/^\| (\d+) +\| (.*?) +\|$/gm)].map(([, code, text]) => [
      Number(code),
      text,
    ])
    const known = Object.entries(exitCodes).map(([name, code]) => [code, exitCodeTexts[name as keyof typeof exitCodes]])
    expect(rows).toEqual(known)
    const { stdout, code } = await cli(['--help'], { cwd: '.' })
    expect(code).toBe(0)
    for (const [number, text] of known) expect(stdout).toContain(`${String(number).padEnd(4)} ${text}`)
  })

  it('lists the error codes of the command line', () => {
    expect(firstColumn(section('Exit codes')).filter((cell) => cell.startsWith('CHOKAQ_'))).toEqual(cliErrorCodes)
  })

  it('has a section for each command and names each subcommand in it', () => {
    for (const command of program.commands) {
      const headed = page.split(/^## /m).find((each) => each.split('\n')[0]?.includes(`chokaq ${command.name()}`))
      expect(headed, command.name()).toBeDefined()
      for (const { name } of command.commands.map((each) => ({ name: each.name() }))) {
        expect(headed, `${command.name()} ${name}`).toContain(name)
      }
    }
  })

  it('names no option that is not there', () => {
    const known = new Set(leaves(program).flatMap(({ options }) => options.map(({ long }) => long)))
    const named = new Set([...page.matchAll(/--[a-z][a-z-]*/g)].map(([option]) => option))
    expect([...named].filter((option) => !known.has(option))).toEqual([])
  })
})

describe('every command', () => {
  it.each(leaves(program).map((command) => [command.name(), command] as const))(
    '%s describes itself and knows --json',
    (_name, command) => {
      expect(command.description()).not.toBe('')
      expect(command.options.map(({ long }) => long)).toContain('--json')
    },
  )
})

describe('exitCodeOf', () => {
  it('is 1 for what nobody foresaw', () => {
    expect([
      exitCodeOf(new Error('x')),
      exitCodeOf('x'),
      exitCodeOf(new ChokaQError('CHOKAQ_ASSERTION', { what: 'x' })),
    ]).toEqual([1, 1, 1])
  })
})
