const kebabCase = /^[a-z0-9]+(-[a-z0-9]+)*$/
/** Names that say nothing about what is inside. */
const bags = new Set(['util', 'utils', 'helper', 'helpers', 'manager', 'managers', 'common', 'lib', 'misc', 'shared'])

export function fileNames(path: string): readonly string[] {
  return path.split('/').flatMap((segment) => {
    // 'job.test.ts' → 'job' and 'test'
    const parts = segment.replace(/\.tsx?$/, '').split('.')
    const odd = parts.filter((part) => !kebabCase.test(part))
    const bag = parts.flatMap((part) => part.split('-')).filter((word) => bags.has(word))
    return [
      ...odd.map((part) => `${path}: "${part}" is not kebab-case`),
      ...bag.map((word) => `${path}: "${word}" is a bag name; name the file after the one thing it holds`),
    ]
  })
}
