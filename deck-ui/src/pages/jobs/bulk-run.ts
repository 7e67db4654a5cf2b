/**
 * A bulk act, call by call, so that a person can see a few done before the rest, and stop.
 *
 *   ready -> running (the sample) -> sampled -> running (the rest) -> finished
 *                                      any running -> stopped | failed
 */
import { useRef, useState } from 'react'
import type { BulkAnswer } from '../../../../src/deck/wire-jobs.ts'

export interface BulkProgress {
  readonly phase: 'ready' | 'running' | 'sampled' | 'finished' | 'stopped' | 'failed'
  readonly doneCount: number
  readonly refused: ReadonlyMap<string, number>
  readonly cursor: string | undefined
  readonly error: unknown
}

const start: BulkProgress = { phase: 'ready', doneCount: 0, refused: new Map(), cursor: undefined, error: null }

export type BulkStep = (limit: number, cursor: string | undefined) => Promise<BulkAnswer>

export interface BulkRun {
  readonly progress: BulkProgress
  /** Runs one call of at most `limit` jobs. */
  readonly runSample: (limit: number) => Promise<void>
  /** Runs calls until nothing is left or `stop` is called. */
  readonly runRest: (limit: number) => Promise<void>
  readonly stop: () => void
}

export function useBulkRun(step: BulkStep): BulkRun {
  const [progress, setProgress] = useState(start)
  const latest = useRef(start)
  const stopping = useRef(false)
  const show = (change: Partial<BulkProgress>): void => {
    latest.current = { ...latest.current, ...change }
    setProgress(latest.current)
  }

  const call = async (limit: number): Promise<'more' | 'end' | 'failed'> => {
    try {
      const answer = await step(limit, latest.current.cursor)
      show(progressAfter(latest.current, answer))
      return answer.nextCursor === null ? 'end' : 'more'
    } catch (error) {
      show({ phase: 'failed', error })
      return 'failed'
    }
  }

  return {
    progress,
    runSample: async (limit) => {
      show({ phase: 'running', error: null })
      const came = await call(limit)
      if (came !== 'failed') show({ phase: came === 'end' ? 'finished' : 'sampled' })
    },
    runRest: async (limit) => {
      stopping.current = false
      show({ phase: 'running', error: null })
      for (;;) {
        const came = await call(limit)
        if (came === 'failed') return
        if (came === 'end') return show({ phase: 'finished' })
        if (stopping.current) return show({ phase: 'stopped' })
      }
    },
    stop: () => {
      stopping.current = true
    },
  }
}

export function progressAfter(before: BulkProgress, answer: BulkAnswer): Partial<BulkProgress> {
  const refused = new Map(before.refused)
  for (const { why, count } of answer.refused) refused.set(why, (refused.get(why) ?? 0) + count)
  return { doneCount: before.doneCount + answer.doneCount, refused, cursor: answer.nextCursor ?? undefined }
}

export function refusedCount({ refused }: BulkProgress): number {
  return [...refused.values()].reduce((sum, count) => sum + count, 0)
}
