/** Short answers to what a person just did. They stay until they are closed or the next one comes. */
import { createContext, type ReactNode, use, useCallback, useState } from 'react'
import { Text } from '../text/text.tsx'
import { Icon } from './icon.tsx'

interface Notice {
  readonly tone: 'good' | 'warning'
  readonly text: string
}

type Say = (notice: Notice) => void
const NoticeContext = createContext<Say>(() => undefined)

export function NoticeProvider({ children }: { readonly children: ReactNode }) {
  const [notice, setNotice] = useState<Notice | null>(null)
  const say = useCallback<Say>((next) => setNotice(next), [])
  return (
    <NoticeContext value={say}>
      {children}
      <div className="notices" role="status" aria-live="polite">
        {notice === null ? null : (
          <div className={`notice-bar tone-${notice.tone}`}>
            <Icon name={notice.tone === 'good' ? 'check' : 'warning'} />
            <Text>{notice.text}</Text>
            <button type="button" className="icon-button" aria-label="Dismiss" onClick={() => setNotice(null)}>
              <Icon name="close" />
            </button>
          </div>
        )}
      </div>
    </NoticeContext>
  )
}

export function useSay(): Say {
  return use(NoticeContext)
}
