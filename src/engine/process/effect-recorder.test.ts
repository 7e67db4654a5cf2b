import { describe, expect, it } from 'vitest'
import { ChokaQError } from '../../core/errors.ts'
import type { LedgerRequest, LedgerVerdict } from '../../core/ledger.ts'
import { EffectRecorder } from './effect-recorder.ts'

const refused: LedgerVerdict = {
  kind: 'refused',
  error: new ChokaQError('CHOKAQ_STORAGE_FAILED', { problem: 'stack depth limit exceeded' }),
}

function recorder(answer: (request: LedgerRequest) => LedgerVerdict) {
  const requests: LedgerRequest[] = []
  const doubles: string[] = []
  const ledger = async (request: LedgerRequest): Promise<LedgerVerdict> => {
    requests.push(request)
    return answer(request)
  }
  return { requests, doubles, recorder: new EffectRecorder(ledger, (effect) => void doubles.push(effect)) }
}

describe('an outcome whose content the database refuses', () => {
  it('is recorded as what it is, without its result', async () => {
    const scene = recorder((request) =>
      request.kind === 'close' && request.result !== null ? refused : { kind: 'closed', double: true },
    )
    scene.recorder.record('charge', 'i1', { state: 'done', result: '{"id":1}', supersedes: 'same-key' })
    await scene.recorder.flush()
    expect(scene.requests).toHaveLength(2)
    expect(scene.requests[1]).toMatchObject({
      kind: 'close',
      id: 'i1',
      state: 'done',
      result: null,
      supersedes: 'same-key',
      failure: { code: 'CHOKAQ_STORAGE_FAILED', message: 'The storage failed: stack depth limit exceeded' },
    })
    expect(scene.doubles).toEqual(['charge'])
    expect(scene.recorder.pending).toEqual([])
  })

  it('leaves the intent open where even that is refused', async () => {
    const scene = recorder(() => refused)
    scene.recorder.record('charge', 'i1', { state: 'done', result: '1' })
    await scene.recorder.flush()
    expect(scene.recorder.pending).toEqual([])
    expect(scene.doubles).toEqual([])
    await expect(scene.recorder.close('i1', { state: 'done' })).rejects.toBe(refused.error)
  })
})
