import { CopyButton } from './copyable.tsx'
import { prettyJson } from './json-text.ts'
import { Text } from './text.tsx'

interface JsonViewProps {
  readonly json: string
  /** For the copy button and for screen readers: `payload`. */
  readonly what: string
}

/** JSON text, spread over lines. It is text: nothing in it is a link or markup. */
export function JsonView({ json, what }: JsonViewProps) {
  return (
    <div className="code-block">
      <CopyButton value={json} what={what} />
      <pre tabIndex={0} role="region" aria-label={what}>
        {tokensOf(prettyJson(json)).map(({ kind, text }, at) => (
          <span key={at} className={kind === undefined ? undefined : `json-${kind}`}>
            <Text block>{text}</Text>
          </span>
        ))}
      </pre>
    </div>
  )
}

interface Token {
  readonly kind?: 'name' | 'string' | 'atom'
  readonly text: string
}

/** Beyond this, colours cost more than they help. */
const longestColoured = 20_000
const token = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d[\d.eE+-]*/g

function tokensOf(json: string): readonly Token[] {
  if (json.length > longestColoured) return [{ text: json }]
  const tokens: Token[] = []
  let from = 0
  for (const match of json.matchAll(token)) {
    if (match.index > from) tokens.push({ text: json.slice(from, match.index) })
    const [whole, string, colon] = match
    if (string === undefined) tokens.push({ kind: 'atom', text: whole })
    else {
      tokens.push({ kind: colon === undefined ? 'string' : 'name', text: string })
      if (colon !== undefined) tokens.push({ text: colon })
    }
    from = match.index + whole.length
  }
  if (from < json.length) tokens.push({ text: json.slice(from) })
  return tokens
}
