/** Every page has one title. Lines inside fenced code are not headings. */
export function oneTitle(path: string, text: string): readonly string[] {
  const prose = text.replace(/^ {0,3}(`{3,}|~{3,})[^\n]*\n[\s\S]*?^ {0,3}\1[`~]* *$/gm, '')
  const titles = prose.match(/^# .+$|<h1[\s>]/gm) ?? []
  return titles.length === 1 ? [] : [`${path} has ${titles.length} level-one headings instead of one`]
}
