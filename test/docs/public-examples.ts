// The @example of everything the package exports, found through the entries of package.json.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { sourceEntries } from '../../package-entries.ts'
import { root } from './markdown-pages.ts'

export interface PublicExample {
  /** 'chokaq/worker createWorker' */
  readonly of: string
  readonly text: string
}

export function publicExamples(): readonly PublicExample[] {
  const entries = sourceEntries().filter(({ source }) => existsSync(join(root, source)))
  const program = ts.createProgram(
    entries.map(({ source }) => join(root, source)),
    { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.NodeNext, allowImportingTsExtensions: true, noEmit: true },
  )
  const checker = program.getTypeChecker()
  return entries.flatMap(({ specifier, source }) => {
    const file = program.getSourceFile(join(root, source))
    const module = file && checker.getSymbolAtLocation(file)
    const symbols = module === undefined ? [] : checker.getExportsOfModule(module)
    return symbols.flatMap((symbol) => {
      const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
      return [target, ...(target.members?.values() ?? [])].flatMap((each) => {
        const name = each === target ? symbol.name : `${symbol.name}.${each.name}`
        return examplesOf(each, checker).map((text) => ({ of: `${specifier} ${name}`, text }))
      })
    })
  })
}

function examplesOf(symbol: ts.Symbol, checker: ts.TypeChecker): readonly string[] {
  const texts = symbol
    .getJsDocTags(checker)
    .filter(({ name }) => name === 'example')
    .map(({ text }) => `${ts.displayPartsToString(text).trim()}\n`)
  return [...new Set(texts)]
}

/** Names that a text declares at its top level. */
export function declaredNames(text: string): ReadonlySet<string> {
  const file = ts.createSourceFile('example.ts', text, ts.ScriptTarget.ES2022, true)
  const names = file.statements.flatMap((statement) => {
    if (ts.isVariableStatement(statement))
      return statement.declarationList.declarations.map(({ name }) => name.getText())
    if (ts.isFunctionDeclaration(statement)) return [statement.name?.text ?? '']
    return ts.isImportDeclaration(statement) ? importedNames(statement) : []
  })
  return new Set(names)
}

function importedNames({ importClause }: ts.ImportDeclaration): readonly string[] {
  const bindings = importClause?.namedBindings
  return bindings && ts.isNamedImports(bindings) ? bindings.elements.map(({ name }) => name.text) : []
}
