import { useState } from 'react'
import type { QueueView } from '../../../../src/deck/wire.ts'
import { ActButton } from '../../parts/act-button.tsx'
import { ActDialog } from '../../parts/act-dialog.tsx'
import { useOperatorBar } from '../../shell/session.tsx'
import { Text } from '../../text/text.tsx'
import { LimitDialog } from './limit-dialog.tsx'
import { useQueueChange } from './queue-change.ts'

export function QueueActs({ queue }: { readonly queue: QueueView }) {
  const [open, setOpen] = useState<'pause' | 'limit' | null>(null)
  const bar = useOperatorBar()
  const close = (): void => setOpen(null)
  return (
    <span className="acts">
      <ActButton why={bar} icon={queue.paused ? 'play' : 'pause'} onClick={() => setOpen('pause')}>
        {queue.paused ? 'Resume' : 'Pause'}
      </ActButton>
      <ActButton why={bar} onClick={() => setOpen('limit')}>
        Limit
      </ActButton>
      {open === 'pause' ? <PauseDialog queue={queue} onClose={close} /> : null}
      {open === 'limit' ? <LimitDialog queue={queue} onClose={close} /> : null}
    </span>
  )
}

interface PauseDialogProps {
  readonly queue: QueueView
  readonly onClose: () => void
}

function PauseDialog({ queue, onClose }: PauseDialogProps) {
  const { name, paused } = queue
  const change = useQueueChange(queue, `Queue ${name} is ${paused ? 'open again' : 'paused'}.`, onClose)
  return (
    <ActDialog
      title={paused ? 'Resume queue' : 'Pause queue'}
      act={paused ? 'Resume' : 'Pause'}
      noteRequired={false}
      mutation={change}
      onRun={(note) => change.mutate({ paused: !paused, note })}
      onClose={onClose}
    >
      <p>
        {paused ? 'Workers take jobs from ' : 'No worker takes another job from '}
        <b>
          <Text>{name}</Text>
        </b>
        {paused
          ? ' again. What waited is run as fast as the limits allow.'
          : '. What runs now runs to its end, and new jobs are still accepted.'}
      </p>
    </ActDialog>
  )
}
