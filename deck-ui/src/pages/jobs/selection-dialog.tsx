import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { ActAnswer, BulkAct, BulkAnswer } from '../../../../src/deck/wire-jobs.ts'
import { actOnJob, resurrectJob } from '../../api/acts.ts'
import { jobQuery } from '../../api/queries.ts'
import { problemOf } from '../../api/request.ts'
import { PhraseField } from '../../parts/act-dialog.tsx'
import { DialogFrame } from '../../parts/dialog.tsx'
import { NoteField } from '../../parts/note-field.tsx'
import { plural } from '../../text/duration.ts'
import { BulkFoot } from './bulk-foot.tsx'
import { BulkResult } from './bulk-result.tsx'
import { type BulkStep, useBulkRun } from './bulk-run.ts'
import { bulkWords } from './bulk-words.ts'

interface SelectionDialogProps {
  readonly act: BulkAct
  readonly ids: readonly string[]
  readonly onClose: () => void
}

/** An act on the jobs that a person picked, one after the other. */
export function SelectionDialog({ act, ids, onClose }: SelectionDialogProps) {
  const [note, setNote] = useState('')
  const [typed, setTyped] = useState('')
  const run = useBulkRun(useSelectionStep(act, ids, note.trim()))
  const words = bulkWords[act]
  const phrase = act === 'purge' ? `purge ${ids.length}` : undefined
  const missing =
    note.trim() === ''
      ? 'Write a note first.'
      : phrase !== undefined && typed !== phrase
        ? 'Type the confirmation first.'
        : undefined
  return (
    <DialogFrame title={`${words.button}: ${plural(ids.length, 'selected job')}`} onClose={onClose}>
      <div className="dialog-body">
        <p>{words.what}</p>
        {run.progress.phase === 'ready' ? (
          <>
            <NoteField value={note} onChange={setNote} required />
            {phrase === undefined ? null : <PhraseField phrase={phrase} typed={typed} onChange={setTyped} />}
          </>
        ) : null}
        <BulkResult progress={run.progress} total={ids.length} done={words.done} />
        <BulkFoot
          run={run}
          act={words.button}
          danger={act === 'purge'}
          count={String(ids.length)}
          isSmall={ids.length <= 10}
          missing={missing}
          onClose={onClose}
        />
      </div>
    </DialogFrame>
  )
}

/** The selection as pages of itself: the cursor is how many are done. */
function useSelectionStep(act: BulkAct, ids: readonly string[], note: string): BulkStep {
  const client = useQueryClient()
  return async (limit, cursor) => {
    const from = cursor === undefined ? 0 : Number(cursor)
    // Small steps after the sample, so that Stop is heard between them.
    const part = ids.slice(from, from + Math.min(limit, 10))
    const refused = new Map<string, number>()
    let doneCount = 0
    for (const id of part) {
      const { done, title } = await actOnOne(id)
      if (done) doneCount += 1
      else refused.set(title, (refused.get(title) ?? 0) + 1)
    }
    const next = from + part.length
    return answerOf(doneCount, refused, next < ids.length ? String(next) : null)
  }

  async function actOnOne(id: string): Promise<ActAnswer> {
    try {
      if (act !== 'resurrect') return await actOnJob(id, act, act === 'purge' ? { note, confirm: id } : { note })
      const { job } = await client.fetchQuery(jobQuery(id))
      return await resurrectJob(id, { mode: 'continue', note, revision: job.revision })
    } catch (error) {
      const problem = problemOf(error)
      // What one job is refused for says nothing about the next; where nobody answers, the rest fails too.
      if (problem.status === 0 || problem.status === 401) throw error
      return { done: false, title: problem.title }
    }
  }
}

function answerOf(doneCount: number, refused: ReadonlyMap<string, number>, nextCursor: string | null): BulkAnswer {
  return { doneCount, refused: [...refused].map(([why, count]) => ({ why, count })), nextCursor }
}
