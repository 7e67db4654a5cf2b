import { useState } from 'react'
import type { BulkAct, JobCount, JobFilterView, PillarView } from '../../../../src/deck/wire-jobs.ts'
import { ActButton } from '../../parts/act-button.tsx'
import { useOperatorBar, useSession } from '../../shell/session.tsx'
import { limitedCount } from '../../text/duration.ts'
import { bulkWords } from './bulk-words.ts'
import { MatchingDialog } from './matching-dialog.tsx'
import { SelectionDialog } from './selection-dialog.tsx'

interface BulkBarProps {
  readonly pillar: PillarView
  readonly filter: JobFilterView
  readonly selected: ReadonlySet<string>
  readonly matching: JobCount | undefined
  readonly onDone: () => void
}

const actsOf: Readonly<Record<PillarView, readonly BulkAct[]>> = {
  hot: ['retry-now', 'cancel'],
  archive: [],
  dlq: ['resurrect', 'purge'],
}

/** Acts on the selected jobs where some are selected, else on everything that matches the filter. */
export function BulkBar({ pillar, filter, selected, matching, onDone }: BulkBarProps) {
  const [act, setAct] = useState<BulkAct | null>(null)
  const bar = useBulkBar()
  const acts = actsOf[pillar]
  const isNothing = selected.size === 0 && (matching === undefined || matching.count === 0)
  if (acts.length === 0 || isNothing) return null
  const target =
    selected.size > 0 ? `${selected.size} selected` : matching === undefined ? '' : `all ${limitedCount(matching)}`
  const close = (): void => {
    setAct(null)
    onDone()
  }
  return (
    <div className="bulk-bar" role="group" aria-label="Acts on several jobs">
      <span className={selected.size > 0 ? 'bulk-target is-selection' : 'bulk-target quiet'}>{target}</span>
      {acts.map((one) => (
        <ActButton key={one} why={bar(one)} tone={one === 'purge' ? 'danger' : undefined} onClick={() => setAct(one)}>
          {bulkWords[one].button}
        </ActButton>
      ))}
      {act === null ? null : selected.size > 0 ? (
        <SelectionDialog act={act} ids={[...selected]} onClose={close} />
      ) : (
        <MatchingDialog target={{ act, filter }} onClose={close} />
      )}
    </div>
  )
}

function useBulkBar(): (act: BulkAct) => string | undefined {
  const { role } = useSession()
  const operatorBar = useOperatorBar()
  return (act) => {
    if (operatorBar !== undefined) return operatorBar
    return act === 'purge' && role !== 'admin' ? 'Deleting jobs needs the role admin.' : undefined
  }
}
