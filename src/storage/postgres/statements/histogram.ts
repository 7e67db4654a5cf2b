/** The place of a duration or lag among the bounds of a histogram, as the label it is counted under. */
import { histogramBoundsMs } from '../../../core/metrics.ts'

// The function counts the bounds that are not above its value; ours are inclusive.
const bounds = `'{${histogramBoundsMs.join(',')}}'::bigint[]`

export function histogramLabelOf(milliseconds: string): string {
  return `width_bucket(${milliseconds} - 1, ${bounds})::text`
}
