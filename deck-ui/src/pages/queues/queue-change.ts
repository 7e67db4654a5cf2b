import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { QueueChangeRequest, QueueView } from '../../../../src/deck/wire.ts'
import { changeQueue } from '../../api/acts.ts'
import { useSay } from '../../parts/notices.tsx'

/** Sends a change of a queue, says what became of it, and reads the queues again. */
export function useQueueChange(queue: QueueView, done: string, onClose: () => void) {
  const client = useQueryClient()
  const say = useSay()
  return useMutation({
    mutationFn: (request: QueueChangeRequest) => changeQueue(queue.name, request),
    onSuccess: () => {
      say({ tone: 'good', text: done })
      onClose()
      return client.invalidateQueries({ queryKey: ['queues'] })
    },
  })
}
