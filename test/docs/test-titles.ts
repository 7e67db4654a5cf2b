// The titles of all tests: those written in test files, and the cases of the storage conformance suite.
import ts from 'typescript'
import { conformanceGroups } from '../../src/testing/conformance/storage-conformance.ts'
import { eachNode, readSources, type SourceFile } from '../tidy/source-file.ts'
import { root } from './markdown-pages.ts'

export function testTitles(): ReadonlySet<string> {
  const written = readSources(root, ['src', 'test']).filter(({ path }) => path.endsWith('.test.ts'))
  const cases = conformanceGroups.flatMap((group) => Object.keys(group.cases))
  return new Set([...written.flatMap(titlesIn), ...cases])
}

/** it('…'), test('…'), it.each(…)('…'), it.skipIf(…)('…') */
function titlesIn(file: SourceFile): readonly string[] {
  const titles: string[] = []
  eachNode(file, (node) => {
    if (!ts.isCallExpression(node)) return
    const [title] = node.arguments
    if (title !== undefined && ts.isStringLiteralLike(title) && isTest(node.expression)) titles.push(title.text)
  })
  return titles
}

function isTest(callee: ts.Expression): boolean {
  let name = callee
  while (ts.isPropertyAccessExpression(name) || ts.isCallExpression(name)) name = name.expression
  return ts.isIdentifier(name) && (name.text === 'it' || name.text === 'test')
}
