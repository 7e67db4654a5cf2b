import { Fragment } from 'react'
import { piecesOf } from './visible-controls.ts'

interface TextProps {
  readonly children: string
  /** Keeps line ends and tabs. */
  readonly block?: boolean
}

/** A text of a user, isolated from the direction of what stands around it. */
export function Text({ children, block = false }: TextProps) {
  const pieces = piecesOf(children, { block })
  return (
    <bdi>
      {pieces.map(({ text, isSign }, at) =>
        isSign ? (
          <span key={at} className="unseen-sign" title="a character that would not be seen">
            {text}
          </span>
        ) : (
          <Fragment key={at}>{text}</Fragment>
        ),
      )}
    </bdi>
  )
}
