import ts from 'typescript'
import { eachNode, type SourceFile } from './source-file.ts'

/**
 * Uses of a global by its bare name (`setTimeout`) or through globalThis, in value positions. A file that declares the
 * name itself (a parameter `clock: { setTimeout }`, say) speaks of its own: scopes are not followed any further.
 */
export function globalUses(file: SourceFile, names: ReadonlySet<string>): readonly ts.Identifier[] {
  const declared = new Set<string>()
  const found: ts.Identifier[] = []
  eachNode(file, (node) => {
    if (!ts.isIdentifier(node) || !names.has(node.text)) return
    if (isBinding(node)) declared.add(node.text)
    else if (isValueUse(node)) found.push(node)
  })
  return found.filter((node) => !declared.has(node.text) || isOnGlobalThis(node))
}

function isBinding(node: ts.Identifier): boolean {
  const { parent } = node
  const bindsName =
    ts.isVariableDeclaration(parent) ||
    ts.isParameter(parent) ||
    ts.isBindingElement(parent) ||
    ts.isFunctionDeclaration(parent) ||
    ts.isClassDeclaration(parent) ||
    ts.isImportSpecifier(parent) ||
    ts.isImportClause(parent) ||
    ts.isNamespaceImport(parent)
  // In the type of a function (`(process: Step) => void`) the parameter binds nothing.
  return bindsName && parent.name === node && !ts.isFunctionTypeNode(parent.parent)
}

function isValueUse(node: ts.Identifier): boolean {
  const { parent } = node
  if (isOnGlobalThis(node)) return true
  if (ts.isPropertyAccessExpression(parent)) return parent.expression === node
  if (ts.isShorthandPropertyAssignment(parent)) return true
  if (ts.isExportSpecifier(parent) || ts.isQualifiedName(parent) || ts.isTypeReferenceNode(parent)) return false
  if (ts.isTypeQueryNode(parent) || ts.isBindingElement(parent)) return false
  const isName = 'name' in parent && parent.name === node
  return !isName && !ts.isLabeledStatement(parent) && !ts.isBreakOrContinueStatement(parent)
}

function isOnGlobalThis({ parent }: ts.Identifier): boolean {
  return (
    ts.isPropertyAccessExpression(parent) &&
    ts.isIdentifier(parent.expression) &&
    parent.expression.text === 'globalThis'
  )
}
