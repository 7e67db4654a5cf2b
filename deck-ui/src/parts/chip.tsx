import { Text } from '../text/text.tsx'

export type Tone = 'neutral' | 'good' | 'run' | 'wait' | 'warning' | 'bad' | 'doubt'

export function Chip({ tone, children }: { readonly tone: Tone; readonly children: string }) {
  return (
    <span className={`chip tone-${tone}`}>
      <Text>{children}</Text>
    </span>
  )
}

interface StateChipProps {
  readonly state: string
  readonly inDoubt: boolean
}

export function StateChip({ state, inDoubt }: StateChipProps) {
  if (inDoubt) return <Chip tone="doubt">in doubt</Chip>
  return <Chip tone={toneOfState(state)}>{state}</Chip>
}

function toneOfState(state: string): Tone {
  switch (state) {
    case 'completed':
      return 'good'
    case 'processing':
    case 'fetched':
      return 'run'
    case 'scheduled':
    case 'pending':
      return 'wait'
    case 'dead':
      return 'bad'
    default:
      return 'neutral'
  }
}
