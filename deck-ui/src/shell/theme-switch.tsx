import { useState } from 'react'
import { Icon } from '../parts/icon.tsx'
import { chooseTheme, storedTheme, type Theme, themes } from './theme.ts'

const icons = { auto: 'auto', light: 'sun', dark: 'moon' } as const
const names = { auto: 'As the system', light: 'Light', dark: 'Dark' } as const

export function ThemeSwitch() {
  const [theme, setTheme] = useState(storedTheme)
  const choose = (next: Theme): void => {
    chooseTheme(next)
    setTheme(next)
  }
  return (
    <div className="segments segments-icons" role="radiogroup" aria-label="Colours">
      {themes.map((one) => (
        <button
          key={one}
          type="button"
          role="radio"
          aria-checked={theme === one}
          aria-label={names[one]}
          title={names[one]}
          onClick={() => choose(one)}
        >
          <Icon name={icons[one]} />
        </button>
      ))}
    </div>
  )
}
