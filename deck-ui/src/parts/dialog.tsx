import { Dialog } from '@base-ui/react/dialog'
import type { ReactNode } from 'react'
import { Icon } from './icon.tsx'

interface DialogFrameProps {
  readonly title: ReactNode
  readonly onClose: () => void
  readonly children: ReactNode
  readonly wide?: boolean
}

/** A dialog that is open while it is rendered. Base UI traps the focus, closes on Escape and gives the focus back. */
export function DialogFrame({ title, onClose, children, wide = false }: DialogFrameProps) {
  return (
    <Dialog.Root open onOpenChange={(open) => (open ? undefined : onClose())}>
      <Dialog.Portal>
        <Dialog.Backdrop className="dialog-backdrop" />
        <Dialog.Popup className={wide ? 'dialog dialog-wide' : 'dialog'}>
          <div className="dialog-head">
            <Dialog.Title className="dialog-title">{title}</Dialog.Title>
            <Dialog.Close className="icon-button" aria-label="Close">
              <Icon name="close" />
            </Dialog.Close>
          </div>
          {children}
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  )
}
