import ts from 'typescript'
import { at, eachNode, isTestFile, type SourceFile } from './source-file.ts'

const maxFileLines = 400
const maxFunctionLines = 70

/** Baked from files that are short themselves, and compared with them by a test. */
const baked = /^src\/storage\/[a-z]+\/migrations\.ts$/

export function fileLength({ path, text }: SourceFile): readonly string[] {
  if (baked.test(path)) return []
  const lines = text.replace(/\n$/, '').split('\n').length
  return lines > maxFileLines ? [`${path} has ${lines} lines, more than ${maxFileLines}: split it by concept`] : []
}

/** In a test file the callback of describe() is a container, not a function; nothing else is exempt. */
export function functionLength(file: SourceFile): readonly string[] {
  const found: string[] = []
  eachNode(file, (node) => {
    if (!isFunction(node) || !node.body || (isTestFile(file.path) && isDescribeCallback(node))) return
    const lines = lineOf(file, node.getEnd()) - lineOf(file, node.getStart(file.ast)) + 1
    if (lines > maxFunctionLines) {
      found.push(`${at(file, node)} ${nameOf(node)} has ${lines} lines, more than ${maxFunctionLines}`)
    }
  })
  return found
}

function isFunction(node: ts.Node): node is ts.FunctionLikeDeclaration {
  return (
    ts.isFunctionDeclaration(node) ||
    ts.isFunctionExpression(node) ||
    ts.isArrowFunction(node) ||
    ts.isMethodDeclaration(node) ||
    ts.isConstructorDeclaration(node) ||
    ts.isAccessor(node)
  )
}

/** describe(…, fn), describe.skipIf(…)(…, fn), describe.each(…)(…, fn) */
function isDescribeCallback(node: ts.Node): boolean {
  if (!ts.isCallExpression(node.parent) || node.parent.expression === node) return false
  let callee: ts.Expression = node.parent.expression
  while (ts.isPropertyAccessExpression(callee) || ts.isCallExpression(callee)) callee = callee.expression
  return ts.isIdentifier(callee) && callee.text === 'describe'
}

function lineOf(file: SourceFile, position: number): number {
  return file.ast.getLineAndCharacterOfPosition(position).line
}

function nameOf(node: ts.FunctionLikeDeclaration): string {
  if (node.name) return node.name.getText()
  if (ts.isConstructorDeclaration(node)) return 'constructor'
  return ts.isVariableDeclaration(node.parent) ? node.parent.name.getText() : 'an unnamed function'
}
