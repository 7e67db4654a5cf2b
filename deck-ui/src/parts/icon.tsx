/** Line icons, drawn for this page. They decorate: the meaning always stands in text beside them. */
const paths = {
  overview: 'M3 13h4l3-8 4 14 3-6h4',
  review: 'M9.1 9a3 3 0 1 1 4.2 2.8c-.9.5-1.3 1-1.3 2.2M12 17.5v.01M12 2.8 21.2 12 12 21.2 2.8 12Z',
  queues: 'M4 6h16M4 12h16M4 18h10',
  jobs: 'M4 5h16v4H4zM4 11h16v4H4zM4 17h10',
  workers: 'M5 5h14v6H5zM5 13h14v6H5zM8 8h.01M8 16h.01',
  checklist: 'm4 7 2 2 3-4M4 17l2 2 3-4M13 7h7M13 17h7',
  audit: 'M6 3h9l4 4v14H6zM14 3v5h5M9 13h7M9 17h5',
  check: 'm5 13 4 4L19 7',
  copy: 'M9 9h11v11H9zM15 9V4H4v11h5',
  warning: 'M12 4 2.8 20h18.4ZM12 10v4M12 17.2v.01',
  critical: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18ZM9 9l6 6M15 9l-6 6',
  notice: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18ZM12 11v5M12 7.8v.01',
  arrow: 'M5 12h14M13 6l6 6-6 6',
  close: 'M6 6l12 12M18 6 6 18',
  menu: 'M4 7h16M4 12h16M4 17h16',
  pause: 'M8 5v14M16 5v14',
  play: 'M8 5l11 7-11 7Z',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8ZM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6 19 19M19 5l-1.4 1.4M6.4 17.6 5 19',
  moon: 'M20 14.5A8.5 8.5 0 1 1 9.5 4 7 7 0 0 0 20 14.5Z',
  auto: 'M12 3a9 9 0 1 0 0 18ZM12 3a9 9 0 0 1 0 18',
  refresh: 'M20 11a8 8 0 1 0-2.3 6.3M20 4v7h-7',
} as const

export type IconName = keyof typeof paths

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  )
}
