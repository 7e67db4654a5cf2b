// A test that sleeps is slow when it passes and flaky when it matters. Move the injected clock, await a signal, or block
// a handler on a promise the test holds. A timer that only limits how long a test may take (it rejects, or kills a
// process) is no sleep. The list of exceptions is empty and stays so.
import ts from 'typescript'
import { importsOf } from './imports.ts'
import { at, eachNode, isTestFile, type SourceFile } from './source-file.ts'

const waitingNames = new Set(['sleep', 'delay'])
const timerModules = new Set(['timers/promises', 'node:timers/promises'])

export function sleepsInTests(file: SourceFile): readonly string[] {
  if (!isTestFile(file.path)) return []
  const found = importsOf(file)
    .filter(({ specifier }) => timerModules.has(specifier))
    .map(({ node }) => `${at(file, node)} timers/promises in a test is a sleep`)
  eachNode(file, (node) => {
    if (ts.isCallExpression(node) && isSleep(node)) {
      found.push(`${at(file, node)} a test may not sleep: move the clock or await a signal`)
    }
  })
  return found
}

function isSleep(node: ts.CallExpression): boolean {
  const callee = node.expression
  const name = ts.isPropertyAccessExpression(callee) ? callee.name.text : ts.isIdentifier(callee) ? callee.text : ''
  if (waitingNames.has(name)) return true
  if (name === 'wait' && ts.isPropertyAccessExpression(callee)) return callee.expression.getText() === 'Atomics'
  const [first] = node.arguments
  if (name === 'promisify') return first?.getText() === 'setTimeout'
  // `clock.setTimeout` is an injected clock: it waits for the test, not for the world.
  const isReal = ts.isIdentifier(callee) || callee.getText() === 'globalThis.setTimeout'
  return name === 'setTimeout' && isReal && first !== undefined && resolvesPromise(node, first)
}

/** `new Promise((resolve) => setTimeout(resolve, 10))`, also as `setTimeout(() => resolve(1), 10)`. */
function resolvesPromise(timer: ts.CallExpression, callback: ts.Expression): boolean {
  for (let node: ts.Node = timer.parent; !ts.isSourceFile(node); node = node.parent) {
    if (!ts.isNewExpression(node) || node.expression.getText() !== 'Promise') continue
    const executor = node.arguments?.[0]
    if (!executor || !(ts.isArrowFunction(executor) || ts.isFunctionExpression(executor))) return false
    const resolve = executor.parameters[0]?.name.getText()
    return resolve !== undefined && new RegExp(`\\b${resolve}\\b`).test(callback.getText())
  }
  return false
}
