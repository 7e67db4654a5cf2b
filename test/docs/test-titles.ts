// The titles of all tests: those written in test files, and the cases of the storage conformance suite.
import ts from 'typescript'
import { conformanceGroups } from '../../src/testing/conformance/storage-conformance.ts'
import { eachNode, readSources, type SourceFile } from '../tidy/source-file.ts'
import { root } from './markdown-pages.ts'

export function testTitles(): ReadonlySet<string> {
  const cases = conformanceGroups.flatMap((group) => Object.keys(group.cases))
  return new Set([...[...titlesByFile().values()].flatMap((titles) => [...titles]), ...cases])
}

/** By the path of the file in which they are written; of the conformance suite those that stand there as they are. */
export function titlesByFile(): ReadonlyMap<string, ReadonlySet<string>> {
  const files = readSources(root, ['src', 'test'])
  const isCases = ({ path }: SourceFile): boolean => /\/conformance\/[\w-]+-cases\.ts$/.test(path)
  return new Map([
    ...files.filter(({ path }) => path.endsWith('.test.ts')).map((file) => [file.path, titlesIn(file)] as const),
    ...files.filter(isCases).map((file) => [file.path, casesIn(file)] as const),
  ])
}

/** it('…'), test('…'), it.each(…)('…'), it.skipIf(…)('…') */
function titlesIn(file: SourceFile): ReadonlySet<string> {
  const titles = new Set<string>()
  eachNode(file, (node) => {
    if (!ts.isCallExpression(node)) return
    const [title] = node.arguments
    if (title !== undefined && ts.isStringLiteralLike(title) && isTest(node.expression)) titles.add(title.text)
  })
  return titles
}

/** { cases: { '…': async (scene) => …} } */
function casesIn(file: SourceFile): ReadonlySet<string> {
  const titles = new Set<string>()
  eachNode(file, (node) => {
    if (!ts.isPropertyAssignment(node) || node.name.getText(file.ast) !== 'cases') return
    if (!ts.isObjectLiteralExpression(node.initializer)) return
    for (const { name } of node.initializer.properties) {
      if (name !== undefined && ts.isStringLiteralLike(name)) titles.add(name.text)
    }
  })
  return titles
}

function isTest(callee: ts.Expression): boolean {
  let name = callee
  while (ts.isPropertyAccessExpression(name) || ts.isCallExpression(name)) name = name.expression
  return ts.isIdentifier(name) && (name.text === 'it' || name.text === 'test')
}
