// Determinism is a foundation: clock, randomness, ids and scheduling are injected, so that the same engine code runs in
// a seeded simulator. Core is pure on top of that, and the process (environment, console) belongs to the command line.
import ts from 'typescript'
import { globalUses } from './free-names.ts'
import { at, eachNode, isShippedSource, type SourceFile } from './source-file.ts'

const timers = ['setTimeout', 'setInterval', 'setImmediate']
const ambientInCore = new Set([...timers, 'performance', 'process', 'crypto', 'console', 'queueMicrotask'])
const ambientInEngine = new Set([...timers, 'performance', 'crypto'])
const runtimeFile = 'src/engine/node-runtime.ts'

export function bannedCalls(file: SourceFile): readonly string[] {
  const { path } = file
  if (!isShippedSource(path)) return []
  const found: string[] = []
  const forbid = (node: ts.Node, what: string): number => found.push(`${at(file, node)} ${what}`)

  const ambient = ambientNames(path)
  for (const node of globalUses(file, ambient)) forbid(node, `${node.text} is ambient: take it as a parameter`)
  eachNode(file, (node) => {
    if (isDeterministic(path) && isAmbientTimeOrChance(node)) {
      forbid(node, `${node.getText(file.ast)} is ambient: take the clock or the random source as a parameter`)
    }
    if (!path.startsWith('src/cli/')) {
      if (isMember(node, 'process', 'env')) forbid(node, 'process.env is read in src/cli only')
      if (ts.isIdentifier(node) && isMemberOf(node, 'console')) forbid(node, 'console is used in src/cli only')
    }
    if (node.kind === ts.SyntaxKind.AnyKeyword) forbid(node, 'any switches the compiler off: use unknown')
    if (path !== 'src/core/errors.ts' && isBareError(node)) {
      forbid(node, 'bare Error: throw one with a code from src/core/errors.ts')
    }
  })
  return found
}

function ambientNames(path: string): ReadonlySet<string> {
  if (path.startsWith('src/core/')) return ambientInCore
  return path.startsWith('src/engine/') && path !== runtimeFile ? ambientInEngine : new Set()
}

function isDeterministic(path: string): boolean {
  return path.startsWith('src/core/') || (path.startsWith('src/engine/') && path !== runtimeFile)
}

function isAmbientTimeOrChance(node: ts.Node): boolean {
  if (isMember(node, 'Date', 'now') || isMember(node, 'Math', 'random')) return true
  const isDate = (ts.isNewExpression(node) || ts.isCallExpression(node)) && isNamed(node.expression, 'Date')
  return isDate && (ts.isCallExpression(node) || (node.arguments ?? []).length === 0)
}

function isBareError(node: ts.Node): boolean {
  return (ts.isNewExpression(node) || ts.isCallExpression(node)) && isNamed(node.expression, 'Error')
}

function isMember(node: ts.Node, object: string, property: string): boolean {
  return ts.isPropertyAccessExpression(node) && node.name.text === property && isNamed(node.expression, object)
}

function isMemberOf(node: ts.Identifier, object: string): boolean {
  return node.text === object && ts.isPropertyAccessExpression(node.parent) && node.parent.expression === node
}

function isNamed(node: ts.Node, name: string): boolean {
  return ts.isIdentifier(node) && node.text === name
}
