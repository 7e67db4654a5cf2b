// Only src/storage knows that there is SQL, and which databases there are. The others ask for a capability.
import ts from 'typescript'
import { at, eachNode, isShippedSource, type SourceFile } from './source-file.ts'

const sql = /\b(SELECT|INSERT INTO|UPDATE .* SET|DELETE FROM)\b/s
const databaseName = /sqlite|postgres/i
const comparisons = new Set([
  ts.SyntaxKind.EqualsEqualsToken,
  ts.SyntaxKind.EqualsEqualsEqualsToken,
  ts.SyntaxKind.ExclamationEqualsToken,
  ts.SyntaxKind.ExclamationEqualsEqualsToken,
])
const textTests = new Set(['includes', 'startsWith', 'endsWith', 'indexOf', 'match', 'test'])

export function sqlOutsideStorage(file: SourceFile): readonly string[] {
  // The demo plays a user's application, whose own table lives in the same file as its jobs.
  if (!isShippedSource(file.path) || /^src\/(storage|testing|cli\/demo)\//.test(file.path)) return []
  const found: string[] = []
  eachNode(file, (node) => {
    // A template is read whole, so that `UPDATE ${table} SET` is seen.
    if (!ts.isStringLiteralLike(node) && !ts.isTemplateExpression(node)) return
    if (sql.test(node.getText(file.ast))) found.push(`${at(file, node)} SQL belongs to src/storage`)
  })
  return found
}

export function databaseNamesInLogic(file: SourceFile): readonly string[] {
  if (!isShippedSource(file.path) || !/^src\/(core|engine)\//.test(file.path)) return []
  const found: string[] = []
  eachNode(file, (node) => {
    const isNamed = ts.isStringLiteralLike(node) || ts.isRegularExpressionLiteral(node)
    if (!isNamed || !databaseName.test(node.text) || !isCompared(node)) return
    found.push(`${at(file, node)} asks which database it is: ask the storage for a capability instead`)
  })
  return found
}

function isCompared(node: ts.Node): boolean {
  const { parent } = node
  if (ts.isCaseClause(parent)) return parent.expression === node
  if (ts.isBinaryExpression(parent)) return comparisons.has(parent.operatorToken.kind)
  const call = ts.isPropertyAccessExpression(parent) ? parent.parent : parent
  return (
    ts.isCallExpression(call) &&
    ts.isPropertyAccessExpression(call.expression) &&
    textTests.has(call.expression.name.text)
  )
}
