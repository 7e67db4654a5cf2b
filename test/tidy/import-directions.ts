// Who may import whom. The table below is the architecture: core knows nobody, a stage knows core, the worker knows the
// stages, a storage knows core, and only the command line (the composition root) knows everything.
import { type Import, importsOf, isRelative, packageOf, resolveRelative } from './imports.ts'
import { at, isShippedSource, type SourceFile } from './source-file.ts'

interface Layer {
  readonly name: string
  /** Matches the files of the layer. The first layer that matches wins. */
  readonly files: RegExp
  /** Files it may import; `own` in a message means the layer's own files, which are always allowed unless `sealed`. */
  readonly mayImport: readonly RegExp[]
  readonly sealed?: boolean
  /** npm packages and node: modules it may load; a RegExp for families. */
  readonly packages: readonly (string | RegExp)[]
  /** Packages it may name in an `import type` only. */
  readonly typePackages?: readonly string[]
  /** Packages it may load with import() inside a function, never at import time. */
  readonly lazyPackages?: readonly string[]
}

const core = /^src\/core\//
const engineRoot = /^src\/engine\/(?!worker[^/]*\.ts$)[^/]+\.ts$/
const anyNode = /^node:/
/** Built-in modules without clock, randomness, timers or I/O: an engine that uses them still runs in a simulator. */
const pureNode = /^node:(async_hooks|diagnostics_channel|events|util)$/
const schema = '@standard-schema/spec'

const layers: readonly Layer[] = [
  { name: 'core', files: core, mayImport: [], packages: [], typePackages: [schema] },
  {
    name: 'engine/node-runtime.ts',
    files: /^src\/engine\/node-runtime\.ts$/,
    mayImport: [core],
    sealed: true,
    packages: [anyNode, 'uuid'],
  },
  {
    name: 'engine/worker*.ts',
    files: /^src\/engine\/worker[^/]*\.ts$/,
    mayImport: [core, /^src\/engine\//],
    packages: [pureNode],
    typePackages: [schema],
  },
  {
    name: 'engine/*.ts',
    files: engineRoot,
    mayImport: [core],
    sealed: true,
    packages: [pureNode, 'uuid', 'croner'],
    typePackages: [schema],
  },
  ...['enqueue', 'fetch', 'process', 'settle', 'sweep'].map((stage) => ({
    name: `engine/${stage}`,
    files: new RegExp(`^src/engine/${stage}/`),
    mayImport: [core, engineRoot],
    packages: [pureNode, 'uuid', 'croner'],
    typePackages: [schema],
  })),
  ...[
    { database: 'sqlite', drivers: ['better-sqlite3'] },
    { database: 'postgres', drivers: ['pg', 'pg-native'] },
  ].map(({ database, drivers }) => ({
    name: `storage/${database}`,
    files: new RegExp(`^src/storage/${database}/`),
    mayImport: [core, /^src\/storage\/[^/]+\.ts$/],
    packages: [anyNode, ...drivers],
  })),
  { name: 'storage/*.ts', files: /^src\/storage\/[^/]+\.ts$/, mayImport: [core], packages: [anyNode] },
  {
    name: 'http',
    files: /^src\/http\//,
    mayImport: [core, /^src\/engine\/enqueue\//, engineRoot],
    packages: [anyNode, 'hono'],
    typePackages: [schema],
  },
  {
    // The Deck does what the client does, over HTTP. Of the receivers it takes only what Node tells of a request.
    name: 'deck',
    files: /^src\/deck\//,
    mayImport: [core, /^src\/engine\/enqueue\//, engineRoot, /^src\/http\/node\.ts$/],
    packages: [anyNode, '@cfworker/json-schema'],
    typePackages: [schema],
  },
  {
    // Events tell what happened. Spans are open around calls and totals stand in the database, so it also reaches the
    // tracing port and the inspector, through what a client is made of.
    name: 'otel',
    files: /^src\/otel\//,
    mayImport: [core, engineRoot],
    packages: ['@opentelemetry/api'],
  },
  {
    name: 'testing',
    files: /^src\/testing\//,
    mayImport: [core, /^src\/engine\//],
    packages: [anyNode],
    typePackages: ['vitest', schema],
    lazyPackages: ['vitest'],
  },
  { name: 'cli', files: /^src\/cli\//, mayImport: [/^src\//], packages: [/./] },
  {
    name: 'index.ts',
    files: /^src\/index\.ts$/,
    mayImport: [core, /^src\/engine\/enqueue\//, engineRoot],
    packages: [],
    typePackages: [schema],
  },
  {
    name: 'worker.ts',
    files: /^src\/worker\.ts$/,
    mayImport: [core, /^src\/engine\//],
    packages: [],
    typePackages: [schema],
  },
]

export function importDirections(file: SourceFile): readonly string[] {
  if (!isShippedSource(file.path)) return []
  const layer = layers.find(({ files }) => files.test(file.path))
  if (!layer) return [`${file.path} is in no layer: add it to the table in test/tidy/import-directions.ts`]
  return importsOf(file).flatMap((one) => {
    const problem = isRelative(one.specifier) ? wrongFile(file, layer, one) : wrongPackage(layer, one)
    return problem ? [`${at(file, one.node)} ${problem}`] : []
  })
}

function wrongFile(file: SourceFile, layer: Layer, { specifier }: Import): string | undefined {
  const target = resolveRelative(file.path, specifier)
  if (!target.endsWith('.ts')) return `imports ${specifier} without its .ts extension`
  const isOwn = layer.sealed !== true && layer.files.test(target)
  if (isOwn || layer.mayImport.some((pattern) => pattern.test(target))) return undefined
  return `${layer.name} may not import ${target}`
}

function wrongPackage(layer: Layer, { specifier, typeOnly, dynamic }: Import): string | undefined {
  const name = packageOf(specifier)
  const allowed = [
    ...layer.packages,
    ...(typeOnly ? (layer.typePackages ?? []) : []),
    ...(dynamic ? (layer.lazyPackages ?? []) : []),
  ]
  if (name !== 'chokaq' && allowed.some((one) => (typeof one === 'string' ? one === name : one.test(name))))
    return undefined
  const onlyAs = layer.typePackages?.includes(name) ? ' other than with import type' : ''
  return `${layer.name} may not import ${specifier}${onlyAs}`
}
