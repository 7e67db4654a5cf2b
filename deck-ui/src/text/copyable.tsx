import { useState } from 'react'
import { Icon } from '../parts/icon.tsx'
import { copyText } from './clipboard.ts'
import { Text } from './text.tsx'
import { plainText } from './visible-controls.ts'

export function CopyButton({ value, what }: { readonly value: string; readonly what: string }) {
  const [copied, setCopied] = useState(false)
  const copy = async (): Promise<void> => {
    setCopied(await copyText(value))
    setTimeout(() => setCopied(false), 1_500)
  }
  return (
    <button type="button" className="copy-button" aria-label={`Copy ${what}`} title="Copy" onClick={() => void copy()}>
      <Icon name={copied ? 'check' : 'copy'} />
      <span className="off-screen" role="status">
        {copied ? 'copied' : ''}
      </span>
    </button>
  )
}

interface CopyableProps {
  readonly value: string
  /** For the button's name: `job id`. */
  readonly what: string
  /** Shows the two ends of a long value only. */
  readonly short?: boolean
}

export function Copyable({ value, what, short = false }: CopyableProps) {
  const shown = short && value.length > 20 ? `${value.slice(0, 8)}…${value.slice(-6)}` : value
  return (
    <span className="copyable">
      <code title={plainText(value)}>
        <Text>{shown}</Text>
      </code>
      <CopyButton value={value} what={what} />
    </span>
  )
}
