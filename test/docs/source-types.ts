// What the compiler knows of a source file's types, for comparing documents with them.
import { join } from 'node:path'
import ts from 'typescript'
import { root } from './markdown-pages.ts'

export class SourceTypes {
  readonly #checker: ts.TypeChecker
  readonly #exports: readonly ts.Symbol[]

  constructor(path: string) {
    const file = join(root, path)
    const program = ts.createProgram([file], {
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.NodeNext,
      strict: true,
      allowImportingTsExtensions: true,
      noEmit: true,
      types: [],
      skipLibCheck: true,
    })
    const source = program.getSourceFile(file)
    this.#checker = program.getTypeChecker()
    const module = source && this.#checker.getSymbolAtLocation(source)
    this.#exports = module === undefined ? [] : this.#checker.getExportsOfModule(module)
  }

  /** Names of the members of an exported interface or object type, those it inherits included. */
  members(type: string): readonly string[] {
    return this.#typeOf(type)
      .getProperties()
      .map(({ name }) => name)
  }

  /** For a union of objects told apart by the literal member `tag`: tag → names of the other members. */
  variants(type: string, tag: string): ReadonlyMap<string, readonly string[]> {
    const union = this.#typeOf(type)
    const parts = union.isUnion() ? union.types : [union]
    return new Map(
      parts.map((part) => {
        const members = this.#checker.getPropertiesOfType(part)
        const discriminant = members.find(({ name }) => name === tag)
        const literal = discriminant && this.#checker.getTypeOfSymbol(discriminant)
        const value = literal?.isStringLiteral() === true ? literal.value : ''
        return [value, members.map(({ name }) => name).filter((name) => name !== tag)]
      }),
    )
  }

  #typeOf(name: string): ts.Type {
    const symbol = this.#exports.find((each) => each.name === name)
    if (symbol === undefined) throw new RangeError(`no export ${name}`)
    return this.#checker.getDeclaredTypeOfSymbol(symbol)
  }
}
