import { useMutation } from '@tanstack/react-query'
import type { JobFilterView, PillarView } from '../../../../src/deck/wire-jobs.ts'
import { saveExport } from '../../api/acts.ts'
import { problemOf } from '../../api/request.ts'
import { useSay } from '../../parts/notices.tsx'

interface ExportButtonsProps {
  readonly pillar: PillarView
  readonly filter: JobFilterView
}

export function ExportButtons({ pillar, filter }: ExportButtonsProps) {
  const say = useSay()
  const save = useMutation({
    mutationFn: (format: 'csv' | 'jsonl') => saveExport(pillar, filter, format),
    onError: (error) => say({ tone: 'warning', text: problemOf(error).title }),
  })
  return (
    <span className="acts" title="What matches, at most 10,000 rows">
      <span className="quiet">Export</span>
      {(['csv', 'jsonl'] as const).map((format) => (
        <button
          key={format}
          type="button"
          className="button button-small"
          aria-label={`Export as ${format}, at most 10,000 rows`}
          disabled={save.isPending}
          onClick={() => save.mutate(format)}
        >
          {format}
        </button>
      ))}
    </span>
  )
}
