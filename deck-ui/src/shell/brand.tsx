/** The mark: a job list with a seal where a person decided. */
export function Brand() {
  return (
    <span className="brand">
      <svg viewBox="0 0 32 32" aria-hidden="true" focusable="false">
        <rect className="brand-ground" width="32" height="32" rx="7" />
        <path className="brand-lines" d="M8 9h16M8 16h16M8 23h7" />
        <circle className="brand-seal" cx="23" cy="23" r="4.5" />
      </svg>
      <span className="brand-name">
        ChokaQ <b>Deck</b>
      </span>
    </span>
  )
}
