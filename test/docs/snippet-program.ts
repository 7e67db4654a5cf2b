// Type-checks snippets against the sources of the package, as files that exist only in the compiler's memory.
import { join } from 'node:path'
import ts from 'typescript'
import { root } from './markdown-pages.ts'

/** Below the root, so that the package's own name and its development dependencies resolve. Nothing is written there. */
const folder = 'snippets-in-memory'

const options: ts.CompilerOptions = {
  ...readOptions(),
  noEmit: true,
  rewriteRelativeImportExtensions: false,
  noUnusedLocals: false,
  noUnusedParameters: false,
}

function readOptions(): ts.CompilerOptions {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (path) => ts.sys.readFile(path)) as {
    readonly config: unknown
  }
  return ts.parseJsonConfigFileContent(config, ts.sys, root).options
}

/** File names (below one folder per page) and their texts; what the compiler says about them, one line each. */
export function checkSnippets(files: ReadonlyMap<string, string>): readonly string[] {
  const texts = new Map([...files].map(([name, text]) => [join(root, folder, name), text]))
  const host = ts.createCompilerHost(options)
  const { getSourceFile, fileExists, readFile, directoryExists } = host
  host.fileExists = (path) => texts.has(path) || fileExists(path)
  host.readFile = (path) => texts.get(path) ?? readFile(path)
  host.directoryExists = (path) => path.startsWith(join(root, folder)) || (directoryExists?.(path) ?? false)
  host.getSourceFile = (path, languageVersion, ...rest) => {
    const text = texts.get(path)
    return text === undefined
      ? getSourceFile(path, languageVersion, ...rest)
      : ts.createSourceFile(path, text, languageVersion)
  }
  const program = ts.createProgram([...texts.keys()], options, host)
  return [...texts.keys()].flatMap((path) => {
    const source = program.getSourceFile(path)
    const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)]
    return found.map((each) => describe(each, path.slice(join(root, folder).length + 1)))
  })
}

function describe(diagnostic: ts.Diagnostic, name: string): string {
  const { file, start = 0 } = diagnostic
  const line = file === undefined ? 0 : file.getLineAndCharacterOfPosition(start).line + 1
  return `${name}:${line} ${ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n')}`
}
