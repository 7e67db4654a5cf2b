import { DialogFrame } from '../parts/dialog.tsx'
import { places } from './navigation.tsx'

const keys: readonly { readonly keys: readonly string[]; readonly what: string }[] = [
  { keys: ['j', '↓'], what: 'next row' },
  { keys: ['k', '↑'], what: 'row before' },
  { keys: ['Enter'], what: 'open the row' },
  { keys: ['x'], what: 'select the row' },
  { keys: ['/'], what: 'go to the filters' },
  { keys: ['Esc'], what: 'leave a field, close a dialog' },
  { keys: ['?'], what: 'this list' },
]

export function ShortcutHelp({ onClose }: { readonly onClose: () => void }) {
  return (
    <DialogFrame title="Keyboard" onClose={onClose}>
      <dl className="key-list">
        {keys.map((one) => (
          <div key={one.what}>
            <dt>
              {one.keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{one.what}</dd>
          </div>
        ))}
        {places.map(({ letter, name }) => (
          <div key={letter}>
            <dt>
              <kbd>g</kbd>
              <kbd>{letter}</kbd>
            </dt>
            <dd>{name}</dd>
          </div>
        ))}
      </dl>
    </DialogFrame>
  )
}
