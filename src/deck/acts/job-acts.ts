/** What a person does to one job. Each is audited by the storage with the actor and the note. */
import { type ErrorDetails, hasCode, unreachable } from '../../core/errors.ts'
import type { CancelVerdict } from '../../core/inspector.ts'
import type { JobRecord } from '../../core/job.ts'
import type { ResurrectAnswer, ResurrectOptions } from '../../engine/operators.ts'
import type { Context } from '../context.ts'
import { requireRole } from '../gate.ts'
import { DeckRefusal, invalid, jobNotFound } from '../problem.ts'
import { noteOf, optionalText, wholeOf, type Body } from '../request.ts'
import type { ActAnswer, ActView } from '../wire-jobs.ts'
import { roles, type Role } from '../wire.ts'
import { editedPayload, editRefusal } from './edit-payload.ts'

const maxPayloadLength = 2_000_000
const maxRevision = 2 ** 31 - 1

export async function cancel(context: Context, id: string, body: Body): Promise<ActAnswer> {
  return cancelAnswer(await context.chokaq.jobs.cancel(id, context.by(noteOf(body))))
}

function cancelAnswer(verdict: CancelVerdict): ActAnswer {
  switch (verdict.kind) {
    case 'cancelled':
      return { done: true, title: 'Cancelled.' }
    case 'requested':
      return { done: true, title: 'A worker owns it and was asked to stop; it ends with its next beat.' }
    case 'finished':
      return verdict.state === 'dead'
        ? { done: false, title: 'It is in the DLQ: an effect of it is in doubt, or it had died before.' }
        : { done: false, title: `It was ${verdict.state} already.` }
    case 'not-found':
      throw jobNotFound()
    default:
      return unreachable(verdict, 'cancel verdict')
  }
}

export async function retryNow(context: Context, id: string, body: Body): Promise<ActAnswer> {
  if (await context.chokaq.jobs.retryNow(id, context.by(noteOf(body)))) return { done: true, title: 'It is due now.' }
  const job = await context.reads.get(id)
  if (job === undefined) throw jobNotFound()
  return { done: false, title: `It is ${job.state}; only a scheduled job can be started early.` }
}

export async function purge(context: Context, id: string, body: Body): Promise<ActAnswer> {
  if (optionalText(body, 'confirm') !== id) {
    throw new DeckRefusal(400, 'confirmation-needed', "Type the job's id to delete it for good.")
  }
  const count = await context.chokaq.dlq.purge({ ids: [id] }, context.by(noteOf(body)))
  if (count === 1) return { done: true, title: 'Deleted for good.' }
  const job = await context.reads.get(id)
  if (job === undefined) throw jobNotFound()
  if (job.inDoubt) return { done: false, title: 'It is in doubt: decide its review first.' }
  return { done: false, title: `It is ${job.state}; only dead jobs can be deleted.` }
}

export async function resurrect(context: Context, id: string, body: Body): Promise<ActAnswer> {
  const mode = modeOf(optionalText(body, 'mode'))
  const revision = wholeOf(body, 'revision', 0, maxRevision)
  const text = optionalText(body, 'payload', maxPayloadLength)
  const absence = optionalText(body, 'absence', 2_000)
  const options: ResurrectOptions = {
    mode,
    revision,
    ...(text === undefined ? {} : await edit(context, id, text)),
    ...(absence === undefined ? {} : { absence }),
  }
  try {
    return resurrectAnswer(await context.chokaq.dlq.resurrect(id, options, context.by(noteOf(body))))
  } catch (error) {
    if (hasCode(error, 'CHOKAQ_ABSENCE_UNPROVEN')) return unproven(error.details)
    throw text === undefined ? error : editRefusal(error)
  }
}

function unproven({ effects, waitMs }: ErrorDetails<'CHOKAQ_ABSENCE_UNPROVEN'>): ActAnswer {
  const title =
    waitMs === undefined
      ? `Nothing proves that ${effects.join(', ') || 'its work'} did not happen. Say where you looked, or decide its review.`
      : `What you say can be believed in ${Math.ceil(waitMs / 1_000)} s: until then a late call may still arrive.`
  return { done: false, title }
}

async function edit(context: Context, id: string, text: string): Promise<Pick<ResurrectOptions, 'payload' | 'job'>> {
  requireRole(context.identity.role, 'admin')
  const job = await context.reads.get(id)
  if (job === undefined) throw jobNotFound()
  return editedPayload(context, job, text)
}

function modeOf(text: string | undefined): ResurrectOptions['mode'] {
  if (text === 'continue' || text === 'new-operation') return text
  throw invalid('mode must be continue or new-operation.')
}

export function resurrectAnswer(verdict: ResurrectAnswer): ActAnswer {
  const refused = (title: string): ActAnswer => ({ done: false, title })
  switch (verdict.kind) {
    case 'resurrected':
      return { done: true, title: `It is pending again, generation ${verdict.generation}.` }
    case 'not-found':
      throw new DeckRefusal(404, 'job-not-found', 'No dead job has this id (any more).')
    case 'changed':
      throw new DeckRefusal(409, 'changed', 'Somebody else acted on this job meanwhile. Look at it again.')
    case 'active':
      return refused(`Its key is held by active job ${verdict.jobId}.`)
    case 'marked':
      return refused(`Its key was left ${verdict.state} by job ${verdict.jobId}; only a new operation replaces that.`)
    case 'in-doubt':
      return refused('Nobody knows whether its side effects happened: decide its review, or start a new operation.')
    case 'too-old':
      return refused('It is too old to continue safely. Find out what happened, then start a new operation.')
    case 'key-changed':
      return refused('The new payload has another key, which is another operation: start a new operation.')
    default:
      return unreachable(verdict, 'resurrect verdict')
  }
}

/** Which acts are possible now, and why not; the storage has the last word. */
export function actsOf(job: JobRecord, role: Role, canEdit: string | null): readonly ActView[] {
  const isDead = job.pillar === 'dlq'
  const isReview = isDead && (job.inDoubt || job.reason === 'CompleteConflict')
  const needsHot = job.pillar === 'hot' ? null : 'It has left hot.'
  const needsDead = isDead ? null : 'Only a dead job can come back.'
  const doubt = 'It is in doubt: decide its review.'
  return [
    act('cancel', role, 'operator', needsHot),
    act('retry-now', role, 'operator', job.state === 'scheduled' ? null : 'It is not scheduled.'),
    act('resurrect-continue', role, 'operator', needsDead ?? (job.inDoubt ? doubt : null)),
    act('resurrect-new', role, 'operator', needsDead),
    act('edit', role, 'admin', needsDead ?? canEdit),
    act('purge', role, 'admin', !isDead ? 'Only dead jobs can be deleted.' : job.inDoubt ? doubt : null),
    act('review', role, 'operator', isReview ? null : 'It waits for nobody.'),
  ]
}

function act(name: ActView['act'], has: Role, needs: Role, obstacle: string | null): ActView {
  const isAllowed = roles.indexOf(has) >= roles.indexOf(needs)
  const why = obstacle ?? (isAllowed ? null : `This needs the role ${needs}.`)
  return { act: name, allowed: why === null, why }
}
