import { posix } from 'node:path'
import ts from 'typescript'
import { eachNode, type SourceFile } from './source-file.ts'

export interface Import {
  readonly specifier: string
  /** Erased by the compiler: nothing is loaded at run time. */
  readonly typeOnly: boolean
  /** `import('x')` as an expression: loaded when the call runs, not with the module. */
  readonly dynamic: boolean
  readonly node: ts.Node
}

/** Everything the file names as another module: import, export … from, import(), require(), and import types. */
export function importsOf(file: SourceFile): readonly Import[] {
  const found: Import[] = []
  eachNode(file, (node) => {
    const one = staticImport(node) ?? callImport(node) ?? typeImport(node)
    if (one) found.push(one)
  })
  return found
}

function staticImport(node: ts.Node): Import | undefined {
  if (!ts.isImportDeclaration(node) && !ts.isExportDeclaration(node)) return undefined
  if (!node.moduleSpecifier || !ts.isStringLiteral(node.moduleSpecifier)) return undefined
  const typeOnly = ts.isImportDeclaration(node) ? importsOnlyTypes(node) : exportsOnlyTypes(node)
  return { specifier: node.moduleSpecifier.text, typeOnly, dynamic: false, node }
}

function importsOnlyTypes(node: ts.ImportDeclaration): boolean {
  const clause = node.importClause
  if (!clause) return false
  if (clause.phaseModifier === ts.SyntaxKind.TypeKeyword) return true
  if (clause.name || !clause.namedBindings || !ts.isNamedImports(clause.namedBindings)) return false
  return clause.namedBindings.elements.length > 0 && clause.namedBindings.elements.every((one) => one.isTypeOnly)
}

function exportsOnlyTypes(node: ts.ExportDeclaration): boolean {
  if (node.isTypeOnly) return true
  if (!node.exportClause || !ts.isNamedExports(node.exportClause)) return false
  return node.exportClause.elements.length > 0 && node.exportClause.elements.every((one) => one.isTypeOnly)
}

function callImport(node: ts.Node): Import | undefined {
  if (!ts.isCallExpression(node)) return undefined
  const isImport = node.expression.kind === ts.SyntaxKind.ImportKeyword
  const isRequire = ts.isIdentifier(node.expression) && node.expression.text === 'require'
  const [argument] = node.arguments
  if ((!isImport && !isRequire) || !argument || !ts.isStringLiteralLike(argument)) return undefined
  return { specifier: argument.text, typeOnly: false, dynamic: isImport, node }
}

function typeImport(node: ts.Node): Import | undefined {
  if (!ts.isImportTypeNode(node) || !ts.isLiteralTypeNode(node.argument)) return undefined
  if (!ts.isStringLiteral(node.argument.literal)) return undefined
  return { specifier: node.argument.literal.text, typeOnly: true, dynamic: false, node }
}

export function isRelative(specifier: string): boolean {
  return specifier.startsWith('./') || specifier.startsWith('../')
}

/** The path below the root that a relative specifier names, seen from `from`. */
export function resolveRelative(from: string, specifier: string): string {
  return posix.normalize(posix.join(posix.dirname(from), specifier))
}

/** 'node:fs' → 'node:fs'; '@a/b/c' → '@a/b'; 'a/b' → 'a'. */
export function packageOf(specifier: string): string {
  if (specifier.startsWith('node:')) return specifier
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}
