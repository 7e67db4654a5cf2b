export type PathSegment = string | number

const maxKeyChars = 40
const maxSegments = 20

/**
 * The place of a value inside JSON data: `$`, `$.amount`, `$.items[2].id`, `$["odd key"]`. For messages: long keys are
 * cut, and of a very deep path the first and the last segments are shown.
 */
export function jsonPath(segments: readonly PathSegment[]): string {
  if (segments.length <= maxSegments) return `$${segments.map(segmentText).join('')}`
  const half = maxSegments / 2
  const first = segments.slice(0, half).map(segmentText).join('')
  const last = segments.slice(-half).map(segmentText).join('')
  return `$${first} … ${last}`
}

function segmentText(segment: PathSegment): string {
  if (typeof segment === 'number') return `[${segment}]`
  const key = segment.length > maxKeyChars ? `${segment.slice(0, maxKeyChars)}…` : segment
  return /^[\p{ID_Start}_$][\p{ID_Continue}$]*…?$/u.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`
}
