import { useId, useState } from 'react'
import type { QueueView } from '../../../../src/deck/wire.ts'
import { ActDialog } from '../../parts/act-dialog.tsx'
import { useQueueChange } from './queue-change.ts'

interface LimitDialogProps {
  readonly queue: QueueView
  readonly onClose: () => void
}

export function LimitDialog({ queue, onClose }: LimitDialogProps) {
  const [text, setText] = useState(queue.maxConcurrency === null ? '' : String(queue.maxConcurrency))
  const id = useId()
  const change = useQueueChange(queue, `The limit of ${queue.name} is changed.`, onClose)
  const limit = text.trim() === '' ? null : Number(text)
  const isWrong = limit !== null && !(Number.isSafeInteger(limit) && limit >= 1)
  return (
    <ActDialog
      title="Limit of the queue"
      act="Set limit"
      noteRequired={false}
      why={isWrong ? 'The limit is a whole number from 1, or empty.' : undefined}
      mutation={change}
      onRun={(note) => change.mutate({ maxConcurrency: limit, note })}
      onClose={onClose}
    >
      <div className="field">
        <label htmlFor={id}>Most jobs at once, over all workers</label>
        <input
          id={id}
          inputMode="numeric"
          value={text}
          placeholder="no limit"
          aria-describedby={`${id}-hint`}
          onChange={({ target }) => setText(target.value)}
        />
        <p id={`${id}-hint`} className="hint">
          Empty means no limit. A lower limit stops nothing that runs; to stop a queue, pause it.
        </p>
      </div>
    </ActDialog>
  )
}
